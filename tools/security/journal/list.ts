import { z } from 'zod'
import { nextCursor, pageMembers, toPage } from '../../../src/core/base/page.ts'
import { requirePerson } from '../../../src/kernel/context.ts'
import { defineTool } from '../../../src/kernel/tool.ts'
import { entryContent } from '../../../src/records/journal/entry.ts'
import { listJournal } from '../../../src/records/journal/read.ts'

const { id, at, actor, action, object, beforeHash, afterHash } = entryContent.shape

export default defineTool({
  name: 'security.journal.list',
  title: 'Security journal',
  summary:
    'List the changes of the account’s policies, keys, allowances, approvals, locks, factors, signers and cards with their actors, newest first.',
  description:
    'Entries are written together with the change, are immutable, and are chained by their hashes; `bursar audit verify` verifies the chain. They contain no secrets or personal data. Of a state over 1 KB an entry has what changed and the hash of the whole; after 1 MiB of a day, the hash alone. Administrators also see their own administrative actions.',
  route: 'GET /api/security/journal',
  who: 'person',
  effect: 'read',
  input: z.strictObject(pageMembers),
  output: z.strictObject({
    entries: z
      .array(
        z.strictObject({
          id,
          at,
          actor,
          action,
          object,
          before: z
            .unknown()
            .optional()
            .describe('State before the change, or what of it changed; absent for a creation.'),
          after: z
            .unknown()
            .optional()
            .describe('State after the change, or what of it changed; absent for a removal.'),
          beforeHash,
          afterHash,
          hash: z.string().describe('SHA-256 over the entry and the previous one, hex.'),
        }),
      )
      .describe('Entries of this page, newest first.'),
    nextCursor,
  }),
  failures: [],
  example: {},
  run: async (context, input) => {
    const page = toPage(input)
    const { entries, nextCursor } = await listJournal(context.database, {
      accountId: requirePerson(context).account.id,
      page,
    })
    return {
      entries: entries.map(({ hash, content: { accountId: _own, before, after, ...entry } }) => ({
        ...entry,
        ...(before === null ? {} : { before }),
        ...(after === null ? {} : { after }),
        hash,
      })),
      nextCursor,
    }
  },
})
