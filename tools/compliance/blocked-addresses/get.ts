import { z } from 'zod'
import { readBlockedAddresses } from '../../../src/compliance/blocked-addresses.ts'
import { personOf } from '../../../src/kernel/context.ts'
import { defineTool } from '../../../src/kernel/tool.ts'

export default defineTool({
  name: 'compliance.blocked_addresses.get',
  title: 'Blocked addresses',
  summary: 'Read the addresses that no transfer of the account ever pays.',
  route: 'GET /api/compliance/blocked-addresses',
  who: 'person',
  scopes: [],
  effect: 'read',
  mcp: false,
  input: z.strictObject({}),
  output: z.strictObject({
    addresses: z.array(z.string()).describe('EVM addresses in lower case, all of them, in order.'),
  }),
  failures: [],
  example: {},
  run: async (context) => ({
    addresses: await readBlockedAddresses(context.database, {
      accountId: personOf(context).account.id,
      isLocked: false,
    }),
  }),
})
