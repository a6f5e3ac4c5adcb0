import { z } from 'zod'
import { findPasskeys } from '../../../src/identity/passkey-store.ts'
import { personOf } from '../../../src/kernel/context.ts'
import { defineTool } from '../../../src/kernel/tool.ts'
import { nextCursor, onePage, pageMembers, pageOf } from '../../../src/page.ts'

const passkey = z.strictObject({
  id: z.string().describe('`pk_…`'),
  createdAt: z.string().describe('When it was registered, ISO 8601 UTC.'),
  lastUsedAt: z.string().nullable().describe('When it last signed in, ISO 8601 UTC; null: never.'),
  deviceType: z
    .enum(['singleDevice', 'multiDevice'])
    .describe('Whether it stays on one device or is synced to several.'),
  backedUp: z.boolean().describe('Whether its provider keeps a copy.'),
})

export default defineTool({
  name: 'security.passkeys.list',
  title: 'Passkeys',
  summary: 'List the passkeys that sign this account in, newest first.',
  route: 'GET /api/security/passkeys',
  who: 'person',
  scopes: [],
  effect: 'read',
  mcp: false,
  input: z.strictObject(pageMembers),
  output: z.strictObject({
    passkeys: z.array(passkey).describe('This page of them.'),
    nextCursor,
  }),
  failures: [],
  example: { limit: 50 },
  run: async (context, input) => {
    const page = pageOf(input)
    const accountId = personOf(context).account.id
    const { rows, nextCursor } = onePage(await findPasskeys(context.database, { accountId, page }), page)
    return {
      passkeys: rows.map(({ id, createdAt, lastUsedAt, deviceType, backedUp }) => ({
        id,
        createdAt: createdAt.toISOString(),
        lastUsedAt: lastUsedAt?.toISOString() ?? null,
        deviceType,
        backedUp,
      })),
      nextCursor,
    }
  },
})
