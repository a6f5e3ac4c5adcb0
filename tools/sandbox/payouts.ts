import { z } from 'zod'
import { Failure } from '../../src/core/failures/failure.ts'
import { toDecimal } from '../../src/core/money/money.ts'
import { defineTool } from '../../src/kernel/tool.ts'
import { findAnyPayout } from '../../src/rails/banking/payout.ts'

/** The provider's words for each outcome. */
const states = { paid: 'payment_processed', returned: 'returned', failed: 'error' } as const

export default defineTool({
  name: 'sandbox.payouts',
  title: 'Decide a payout',
  summary: 'Decide the outcome of a payout by sending the signed webhook of the banking provider.',
  description:
    'A paid payout may still be returned. Payouts to an account number that ends in 0000 wait for this; others are paid by themselves within five seconds.',
  route: 'POST /sandbox/payouts',
  who: 'public',
  effect: 'write',
  proof: 'none',
  only: 'sandbox',
  ownTransactions: true,
  input: z.strictObject({
    payoutId: z.string().max(64).describe('`out_…`'),
    outcome: z.enum(['paid', 'returned', 'failed']).describe('Outcome that the bank reports.'),
  }),
  output: z.strictObject({
    payoutId: z.string().describe('`out_…`'),
    outcome: z.enum(['paid', 'returned', 'failed']).describe('Reported outcome.'),
  }),
  failures: ['account_locked', 'not_found', 'conflict', 'provider_unavailable'],
  example: { payoutId: 'out_01h455vb4pex5vsknk084sn02q', outcome: 'returned' },
  run: async (context, { payoutId, outcome }) => {
    const { playPayout } = context.bankingProvider
    const payout = await findAnyPayout(context, { id: payoutId })
    if (payout === undefined || playPayout === null)
      throw new Failure('not_found', 'There is no such payout in this sandbox.')
    const { id, providerId, status, money } = payout
    if (providerId === null)
      throw new Failure('conflict', 'The bank does not know the payout yet.', { retryAfter: 1 })
    const isOver =
      status === 'returned' || status === 'failed' || (status === 'paid' && outcome !== 'returned')
    if (isOver) throw new Failure('conflict', `The payout is ${status}: its outcome does not change.`)
    const amount = toDecimal(money)
    await playPayout({ id, providerId, state: states[outcome], amount, currency: money.asset })
    return { payoutId, outcome }
  },
})
