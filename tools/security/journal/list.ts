import { z } from 'zod'
import { nextCursor, pageMembers, pageOf } from '../../../src/base/page.ts'
import { entryContent } from '../../../src/journal/entry.ts'
import { listJournal } from '../../../src/journal/read.ts'
import { personOf } from '../../../src/kernel/context.ts'
import { defineTool } from '../../../src/kernel/tool.ts'

const { id, at, actor, action, object } = entryContent.shape

export default defineTool({
  name: 'security.journal.list',
  title: 'Security journal',
  summary:
    'List who changed the account’s policies, keys, allowances, approvals, locks, factors, signers and cards, newest first.',
  description:
    'Entries are written with the change itself, never changed, and chained by their hashes; `bursar audit verify` verifies the chain. They hold no secrets and no personal data. Administrators also see what they did themselves.',
  route: 'GET /api/security/journal',
  who: 'person',
  scopes: [],
  effect: 'read',
  mcp: false,
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
          before: z.unknown().optional().describe('The state before; absent where it was created.'),
          after: z.unknown().optional().describe('The state after; absent where it was removed.'),
          hash: z.string().describe('SHA-256 over the entry and the one before it, hex.'),
        }),
      )
      .describe('The entries.'),
    nextCursor,
  }),
  failures: [],
  example: {},
  run: async (context, input) => {
    const page = pageOf(input)
    const { entries, nextCursor } = await listJournal(context.database, {
      accountId: personOf(context).account.id,
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
