/** Prepares payouts at the provider for their owner's signature, and cancels those that were not signed. */
import { raiseAlarm } from '../../books/alarms/alarms.ts'
import { Failure } from '../../core/failures/failure.ts'
import { findPayout, type Payout, type PayoutTerms } from './payout.ts'
import {
  advancePrepared,
  answerPrepared,
  claimUnsigned,
  findPreparedPayout,
  insertPrepared,
  isDepositShared,
  type PreparedPayout,
  type SignablePayout,
  unsignedPayouts,
} from './prepared-payout.ts'
import {
  askProvider,
  bookPayoutReport,
  RESEND_MS,
  type SendPayoutDependencies,
  type SentPayout,
} from './send-payout.ts'

/** Longer than an intent can be signed and executed. */
const UNSIGNED_MS = 11 * 60_000
/** Unsigned payouts of an account at a time. */
const MAX_UNSIGNED = 20
const BATCH = 20

type PreparedDependencies = Omit<SendPayoutDependencies, 'oweMint'>

/**
 * Asks the provider for a payout, which waits for its money. The same terms again are the same payout while it is unsigned.
 * @throws Failure `payout_rejected`; `conflict` when another unfunded payout could take the money; `provider_unavailable`
 * when the answer is unknown: the same request asks for the same payout.
 */
export async function preparePayout(
  dependencies: PreparedDependencies,
  terms: PayoutTerms,
): Promise<SignablePayout> {
  const { database } = dependencies
  const prepared = (await findReusable(dependencies, terms)) ?? (await insertPrepared(dependencies, terms))
  const answered = await requireAnswer(dependencies, prepared)
  const { id, accountId, depositTo, money } = answered
  if (!(await isDepositShared(database, { id, accountId, depositTo, money }))) return answered
  // The job tries again what fails here.
  await cancelPrepared(dependencies, answered).catch((err: unknown) =>
    dependencies.log.warn({ err, payoutId: id }, 'an unsigned payout could not be canceled'),
  )
  throw new Failure('conflict', 'Another payout of this amount waits for its money at the same address.', {
    hint: 'Sign that one, wait a quarter of an hour until it has ended, or pay out another amount.',
  })
}

/**
 * Checks at the provider that a payout still awaits its money at the address that was signed.
 * @throws Failure `payout_rejected`, `provider_unavailable`.
 */
export async function requireAwaiting(
  { bankingProvider }: Pick<PreparedDependencies, 'bankingProvider'>,
  { providerId, depositTo, status }: PreparedPayout,
  now: Date,
): Promise<void> {
  if (status !== 'awaiting' || providerId === null) throw noLongerAwaited('it has ended')
  const report = await bankingProvider.findPayout(providerId, now)
  if (report.depositTo !== null && report.depositTo !== depositTo)
    throw noLongerAwaited('the address for its money has changed')
  if (!bankingProvider.awaitsFunds(report.state)) throw noLongerAwaited(`it is ${report.state} at the bank`)
}

/** Takes over the provider's answer to a payout that its owner has signed since. */
export async function takePrepared(
  dependencies: SendPayoutDependencies,
  payout: Payout,
): Promise<SentPayout> {
  const { id, accountId, decisionId } = payout
  const prepared = await findPreparedPayout(dependencies, { id, accountId })
  const { providerId = null, depositTo = null } = prepared ?? {}
  if (providerId === null || depositTo === null) throw new Error(`${id} was not prepared`)
  await bookPayoutReport(dependencies, id, { providerId, state: 'awaiting_funds', depositTo })
  return { payout: (await findPayout(dependencies, { decisionId })) ?? payout, depositTo }
}

/** Cancels unsigned payouts at the provider, when they can no longer be signed. A failing one does not block the others. */
export async function cancelUnsigned(dependencies: PreparedDependencies, signal: AbortSignal): Promise<void> {
  const { clock, log } = dependencies
  const at = clock()
  const before = new Date(at.getTime() - UNSIGNED_MS)
  for (const prepared of await claimUnsigned(dependencies, { before, at, limit: BATCH })) {
    if (signal.aborted) return
    await cancelPrepared(dependencies, prepared).catch((err: unknown) =>
      log.warn({ err, payoutId: prepared.id }, 'an unsigned payout could not be canceled'),
    )
  }
}

async function cancelPrepared(dependencies: PreparedDependencies, prepared: PreparedPayout): Promise<void> {
  const { database, bankingProvider, clock, log } = dependencies
  const { id, createdAt } = prepared
  if (prepared.status === 'new' && clock().getTime() - createdAt.getTime() > RESEND_MS) {
    const reported = { createdAt: createdAt.toISOString() }
    const alarm = { domain: 'banking', objectId: id, reason: 'no_answer', reported, at: clock() } as const
    await raiseAlarm({ database, log }, alarm)
    await advancePrepared(database, id, { from: ['new'], to: 'rejected' })
    return
  }
  // The provider may have accepted a request whose answer was lost: it names the payout once more.
  const { providerId } = await requireAnswer(dependencies, prepared)
  if (!(await advancePrepared(database, id, { from: ['awaiting', 'ending'], to: 'ending' }))) return
  await bankingProvider.cancelPayout(providerId)
  await advancePrepared(database, id, { from: ['ending'], to: 'ended' })
}

/** Finds an unsigned payout of the same terms, whatever its rate. @throws Failure `conflict` when there are too many. */
async function findReusable(
  dependencies: PreparedDependencies,
  { accountId, recipientId, place, money, reference, createdAt }: PayoutTerms,
): Promise<PreparedPayout | undefined> {
  const unsigned = await unsignedPayouts(dependencies, accountId)
  const known = unsigned.find(
    (one) =>
      one.recipientId === recipientId &&
      one.place === place &&
      one.money.asset === money.asset &&
      one.money.units === money.units &&
      one.reference === reference &&
      createdAt.getTime() - one.createdAt.getTime() < RESEND_MS,
  )
  if (known === undefined && unsigned.length >= MAX_UNSIGNED)
    throw new Failure('conflict', `The account has ${MAX_UNSIGNED} unsigned payouts.`, {
      hint: 'Sign one of them, or wait a quarter of an hour until they have ended.',
    })
  return known
}

/** Returns the provider's answer about a prepared payout; asks once more if it is not known. */
async function requireAnswer(
  dependencies: PreparedDependencies,
  prepared: PreparedPayout,
): Promise<SignablePayout> {
  const { database } = dependencies
  const { id, providerId, depositTo } = prepared
  if (providerId !== null && depositTo !== null) return { ...prepared, providerId, depositTo }
  const report = await askProvider(dependencies, prepared).catch(async (error: unknown) => {
    if (error instanceof Failure && error.code === 'payout_rejected')
      await advancePrepared(database, id, { from: ['new'], to: 'rejected' })
    throw error
  })
  const { providerId: known, depositTo: to } = report
  if (to === null)
    throw new Failure('provider_unavailable', 'The bank names no address for the money.', { retryAfter: 5 })
  await answerPrepared(database, { id, providerId: known, depositTo: to })
  return { ...prepared, providerId: known, depositTo: to, status: 'awaiting' }
}

function noLongerAwaited(why: string): Failure {
  return new Failure('payout_rejected', `The signed payout cannot be sent: ${why}. Nothing was sent.`, {
    reason: 'intent_ended',
    isFinal: true,
    hint: 'Ask for a new intent with POST /api/banking/payouts/intent, and sign that.',
  })
}
