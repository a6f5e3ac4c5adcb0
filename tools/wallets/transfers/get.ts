import { z } from 'zod'
import { Failure } from '../../../src/core/failures/failure.ts'
import { requireCaller } from '../../../src/kernel/context.ts'
import { defineTool } from '../../../src/kernel/tool.ts'
import { findOwnTransfer, transferView } from '../../../src/rails/wallets/transfers/transfer-history.ts'
import { nameContact } from '../../../src/records/contacts/names.ts'

export default defineTool({
  name: 'wallets.transfers.get',
  title: 'Transfer',
  summary: 'Read one transfer from the wallet, or a gasless one.',
  description:
    'Use it after `settlement_pending`, every few seconds. `confirmed` and `failed` are final; after `failed` the money is available again.',
  route: 'GET /api/wallets/transfers/{id}',
  who: 'account',
  scopes: ['wallets:read'],
  role: 'accountant',
  effect: 'read',
  mcp: true,
  input: z.strictObject({ id: z.string().max(64).describe('`transferId`: `tx_…`') }),
  output: transferView,
  failures: ['not_found'],
  example: { id: 'tx_01h455vb4pex5vsknk084sn02q' },
  run: async (context, { id }) => {
    const own = { accountId: requireCaller(context).account.id, id }
    const transfer = await findOwnTransfer(context.database, own)
    if (transfer === undefined) throw new Failure('not_found', 'You have no such transfer.')
    return { ...transfer, contact: await nameContact(context, own.accountId, transfer.destination) }
  },
})
