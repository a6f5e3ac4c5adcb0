import { z } from 'zod'
import { Failure } from '../../../src/failures/failure.ts'
import { defineTool } from '../../../src/kernel/tool.ts'
import { purchasedAnswer } from '../../../src/payments/receipt.ts'
import { findPayment } from '../../../src/payments/store.ts'

export default defineTool({
  name: 'x402.payments.get',
  title: 'Payment status',
  summary: 'Read the outcome of an x402 payment that was not settled in time.',
  description:
    'Use it after `settlement_pending` named a `paymentId`, or at the Location of that 503. Free. `pending`: the outcome is unknown; poll again, and do not sign a new payment. `settled`: `result` is the purchased answer. `failed`: nothing was charged and nothing will be.',
  route: 'GET /api/x402/payments/{id}',
  who: 'public',
  scopes: [],
  effect: 'read',
  mcp: true,
  rate: 'fx',
  input: z.strictObject({ id: z.string().max(64).describe('`pay_…`') }),
  output: z.strictObject({
    id: z.string().describe('`pay_…`'),
    status: z.enum(['pending', 'settled', 'failed']).describe('Status of the payment.'),
    transaction: z.string().optional().describe('Hash of the transaction, once one is known.'),
    result: z.record(z.string(), z.unknown()).optional().describe('Purchased answer, once settled.'),
  }),
  failures: ['not_found'],
  example: { id: 'pay_01h455vb4pex5vsknk084sn02q' },
  run: async ({ database }, { id }) => {
    const payment = await findPayment(database, id)
    if (payment === undefined) throw new Failure('not_found', `There is no payment ${id}.`)
    const { state, transaction_hash: transaction } = payment
    return {
      id,
      status: state === 'taking' ? ('pending' as const) : state,
      ...(transaction === null ? {} : { transaction }),
      ...(state === 'settled' ? { result: purchasedAnswer(payment) } : {}),
    }
  },
})
