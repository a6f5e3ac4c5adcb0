import { z } from 'zod'
import { removePasskey } from '../../../src/identity/remove-passkey.ts'
import { personOf } from '../../../src/kernel/context.ts'
import { defineTool } from '../../../src/kernel/tool.ts'

export default defineTool({
  name: 'security.passkeys.remove',
  title: 'Remove a passkey',
  summary: 'Remove a passkey; the last way into the account stays.',
  route: 'DELETE /api/security/passkeys/{id}',
  who: 'person',
  scopes: [],
  effect: 'write',
  mcp: false,
  stepUp: 'recent',
  input: z.strictObject({ id: z.string().max(64).describe('`pk_…`') }),
  output: z.strictObject({ removed: z.literal(true).describe('It no longer signs anybody in.') }),
  failures: ['not_found', 'conflict'],
  example: { id: 'pk_01h455vb4pex5vsknk084sn02q' },
  run: async (context, { id }) => {
    await removePasskey(context.database, { accountId: personOf(context).account.id, id })
    return { removed: true as const }
  },
})
