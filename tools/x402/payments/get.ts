import { z } from 'zod'
import { Failure } from '../../../src/core/failures/failure.ts'
import { defineTool } from '../../../src/kernel/tool.ts'
import { findQuotePayment } from '../../../src/rails/selling/payments/bought-quote.ts'
import { purchasedAnswer } from '../../../src/rails/selling/payments/receipt.ts'
import { findPayment } from '../../../src/rails/selling/payments/store.ts'

export default defineTool({
  name: 'x402.payments.get',
  title: 'Payment status',
  summary: 'Read the outcome of a payment for an FX quote, and the quote.',
  description:
    'Use it after `settlement_pending` named a `paymentId`. `pending`: poll again, do not sign a new payment. `settled`: `result` is what was bought. `failed`: nothing was charged.',
  route: 'GET /api/x402/payments/{id}',
  who: 'public',
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
  run: async (context, { id }) => {
    const { database, principal } = context
    const payment = await findPayment(database, id)
    if (payment !== undefined) {
      const { state, transaction_hash: transaction } = payment
      return viewPayment({
        id,
        status: state === 'taking' ? 'pending' : state,
        transaction,
        result: state === 'settled' ? purchasedAnswer(payment) : null,
      })
    }
    const own =
      principal.kind === 'public'
        ? undefined
        : await findQuotePayment(context, {
            accountId: principal.account.id,
            keyId: principal.kind === 'key' ? principal.key.id : null,
            paymentId: id,
          })
    if (own === undefined) throw new Failure('not_found', `There is no payment ${id}.`)
    return viewPayment({ id, ...own })
  },
})

function viewPayment({
  id,
  status,
  transaction,
  result,
}: {
  id: string
  status: 'pending' | 'settled' | 'failed'
  transaction: string | null
  result: Record<string, unknown> | null
}) {
  return {
    id,
    status,
    ...(transaction === null ? {} : { transaction }),
    ...(result === null ? {} : { result }),
  }
}
