import { z } from 'zod'
import { Failure } from '../../src/core/failures/failure.ts'
import { toDecimal } from '../../src/core/money/money.ts'
import type { Context } from '../../src/kernel/context.ts'
import { defineTool } from '../../src/kernel/tool.ts'
import { findAnyPayout } from '../../src/rails/banking/payout.ts'
import { findAnyRecourse, findStep, type Recourse } from '../../src/records/recourse/store.ts'

export default defineTool({
  name: 'sandbox.recourse',
  title: 'Decide a recourse',
  summary: 'Decide a card dispute or the recall of a payout by sending the signed webhook of its provider.',
  description:
    'A dispute that was won can be lost afterwards: what it gave is taken back. A payout is canceled if it is pending, else returned.',
  route: 'POST /sandbox/recourse',
  who: 'public',
  effect: 'write',
  proof: 'none',
  only: 'sandbox',
  ownTransactions: true,
  input: z.strictObject({
    recourseId: z.string().max(64).describe('`rec_…`'),
    outcome: z.enum(['won', 'lost']).describe('Outcome that the processor reports.'),
  }),
  output: z.strictObject({
    recourseId: z.string().describe('`rec_…`'),
    outcome: z.enum(['won', 'lost']).describe('Reported outcome.'),
  }),
  failures: ['not_found', 'conflict', 'provider_unavailable'],
  example: { recourseId: 'rec_01h455vb4pex5vsknk084sn02q', outcome: 'won' },
  run: async (context, { recourseId, outcome }) => {
    const recourse = await findAnyRecourse(context.database, recourseId)
    if (recourse === undefined) throw new Failure('not_found', 'There is no such recourse in this sandbox.')
    await (recourse.object_kind === 'payout' ? playBank : playCard)(context, recourse, outcome)
    return { recourseId, outcome }
  },
})

type Play = (context: Context, recourse: Recourse, outcome: 'won' | 'lost') => Promise<void>

const playCard: Play = async ({ cardProcessor, database }, recourse, outcome) => {
  const token = findStep(recourse, 'card_dispute')?.evidence?.dispute
  if (token === undefined || cardProcessor.playDispute === null)
    throw new Failure('conflict', 'Nobody but the payee decides this recourse, or it has no dispute yet.')
  const { processor_token: transactionToken } = await database.kysely
    .selectFrom('card_authorization')
    .select('processor_token')
    .where('id', '=', recourse.object_id)
    .executeTakeFirstOrThrow()
  const units = outcome === 'won' ? recourse.claimed : 0n
  await cardProcessor.playDispute({ token, transactionToken, status: outcome, units })
}

const playBank: Play = async (context, recourse, outcome) => {
  const { playPayout } = context.bankingProvider
  const payout = await findAnyPayout(context, { id: recourse.object_id })
  if (payout === undefined || payout.providerId === null || playPayout === null)
    throw new Failure('conflict', 'The bank does not know the payout yet.', { retryAfter: 1 })
  if (outcome === 'lost')
    throw new Failure('conflict', 'A bank that does not return a payout says nothing: its recourse expires.')
  const { id, providerId, status, money } = payout
  const state = status === 'pending' ? 'canceled' : 'returned'
  await playPayout({ id, providerId, state, amount: toDecimal(money), currency: money.asset })
}
