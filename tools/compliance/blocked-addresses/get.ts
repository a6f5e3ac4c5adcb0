import { z } from 'zod'
import { requirePerson } from '../../../src/kernel/context.ts'
import { defineTool } from '../../../src/kernel/tool.ts'
import { readBlockedAddresses } from '../../../src/people/compliance/blocked-addresses.ts'

export default defineTool({
  name: 'compliance.blocked_addresses.get',
  title: 'Blocked addresses',
  summary: 'Read the addresses that are blocked for all transfers of the account.',
  description: 'They are the account’s own list, beside the sanctions lists that hold for everyone.',
  route: 'GET /api/compliance/blocked-addresses',
  who: 'person',
  effect: 'read',
  input: z.strictObject({}),
  output: z.strictObject({
    addresses: z.array(z.string()).describe('All blocked EVM addresses, in lower case, sorted.'),
  }),
  failures: [],
  example: {},
  run: async (context) => ({
    addresses: await readBlockedAddresses(context.database, {
      accountId: requirePerson(context).account.id,
      isLocked: false,
    }),
  }),
})
