/** Resumes payouts that a crash, a lost answer or a lost webhook left open. */
import { sql } from 'kysely'
import { raiseAlarm } from '../../books/alarms/alarms.ts'
import { releaseSpend } from '../../books/spending/release.ts'
import { BANK } from '../../books/spending/sources.ts'
import type { NewId } from '../../core/base/ids.ts'
import { Failure } from '../../core/failures/failure.ts'
import type { Chain } from '../../providers/chain/port.ts'
import { findOwnedWallet } from '../wallets/store.ts'
import { gatewayAuthorization } from '../wallets/transfers/gateway-authorization.ts'
import { fundPayout } from './fund-payout.ts'
import type { Payout } from './payout.ts'
import {
  askProvider,
  bookPayoutReport,
  endPayout,
  RESEND_MS,
  type SendPayoutDependencies,
  sendPayout,
} from './send-payout.ts'

/** Longer than a request needs to fund its payout on the chain. */
const UNFUNDED_MS = 2 * 60_000

/**
 * @property findMove how far the money of a decision has come that moves from another chain first; undefined: none does.
 */
export interface ResumePayoutDependencies extends SendPayoutDependencies {
  readonly chain: Chain
  readonly newId: NewId
  readonly findMove: (
    decisionId: string,
  ) => Promise<{ readonly state: 'moving' | 'arrived' | 'failed'; readonly updatedAt: Date } | undefined>
}

/** Resumes one payout. */
export async function resumePayout(dependencies: ResumePayoutDependencies, payout: Payout): Promise<void> {
  const { bankingProvider, clock } = dependencies
  if (payout.place !== BANK && !(await isFunded(dependencies, payout))) return
  if (payout.providerId !== null) {
    const report = await bankingProvider.findPayout(payout.providerId, clock())
    await bookPayoutReport(dependencies, payout.id, report)
    return
  }
  if (isTooLate(payout, clock())) {
    await stop(dependencies, payout, 'no_answer')
    return
  }
  try {
    await bookPayoutReport(dependencies, payout.id, await askProvider(dependencies, payout))
  } catch (error) {
    // An earlier request may have been accepted although this one is not: the money stays held.
    if (!(error instanceof Failure) || error.code !== 'payout_rejected') throw error
    await stop(dependencies, payout, 'refused_after_silence')
  }
}

/** Tells whether the provider may have forgotten a payout that it did not answer. */
function isTooLate({ createdAt }: Payout, now: Date): boolean {
  return now.getTime() - createdAt.getTime() > RESEND_MS
}

/**
 * Checks whether the chain has funded a payout in stablecoins. Only the request itself funds it, or this job where its money comes from
 * another chain first: one that nobody has funded in time, or whose key or account was stopped, is given up, and the provider never gets the
 * money.
 * @returns false while that is unknown, and for one given up.
 */
async function isFunded(dependencies: ResumePayoutDependencies, payout: Payout): Promise<boolean> {
  const { database, clock } = dependencies
  const at = clock()
  const transfer = await database.kysely
    .selectFrom('transfer')
    .select('state')
    .where('decision_id', '=', payout.decisionId)
    .where('funding_id', 'is', null)
    .executeTakeFirst()
  if (transfer?.state === 'confirmed') return true
  const move = transfer === undefined ? await dependencies.findMove(payout.decisionId) : undefined
  if (move?.state === 'moving') return false
  const since = move?.updatedAt ?? payout.createdAt
  const isGivenUp =
    transfer === undefined
      ? move?.state === 'failed' ||
        at.getTime() - since.getTime() > UNFUNDED_MS ||
        (move !== undefined && (await isStopped(dependencies, payout)))
      : transfer.state === 'failed'
  if (!isGivenUp) {
    if (move !== undefined) await fund(dependencies, payout)
    return false
  }
  // A transfer is written only while the hold stands, so the two exclude each other.
  const verdict = await releaseSpend(database, { decisionId: payout.decisionId, at })
  if (verdict === 'already_settled') return true
  // The provider is asked for a payout only once its money has arrived.
  if (move?.state !== 'failed') await cancelAtProvider(dependencies, payout)
  await endPayout(dependencies, payout, { reason: 'not_funded', at })
  return false
}

/**
 * Cancels a payout that is given up: otherwise the provider could take the money of another one for it. Where its answer was lost, it is
 * asked once more which payout it is.
 * @throws Failure `provider_unavailable`: the payout stays open, and the job tries again.
 */
async function cancelAtProvider(dependencies: ResumePayoutDependencies, payout: Payout): Promise<void> {
  const { bankingProvider, clock } = dependencies
  if (payout.providerId !== null) return bankingProvider.cancelPayout(payout.providerId)
  if (isTooLate(payout, clock())) return stop(dependencies, payout, 'no_answer')
  try {
    const report = await askProvider(dependencies, payout)
    await bookPayoutReport(dependencies, payout.id, report)
    await bankingProvider.cancelPayout(report.providerId)
  } catch (error) {
    if (!(error instanceof Failure) || error.code !== 'payout_rejected') throw error
  }
}

/** Tells whether the key or the account of a payout was stopped after its money had arrived: then nobody is paid. */
async function isStopped(
  { database: { kysely } }: Pick<ResumePayoutDependencies, 'database'>,
  { accountId, keyId }: Payout,
): Promise<boolean> {
  const { isStopped: is } = await kysely
    .selectFrom('account')
    .select(sql<boolean>`status = 'locked' or not key_is_active(${keyId}::text)`.as('isStopped'))
    .where('id', '=', accountId)
    .executeTakeFirstOrThrow()
  return is
}

/** Asks the provider for a payout whose money has arrived from another chain, and sends it. */
async function fund(dependencies: ResumePayoutDependencies, payout: Payout): Promise<void> {
  const wallet = await findOwnedWallet(dependencies.database, payout.accountId)
  if (wallet === undefined) throw new Error(`${payout.accountId} has no wallet`)
  try {
    const sent = await sendPayout(dependencies, payout)
    // Without an address its answer was lost, though the provider may know the payout from before: the next round asks again.
    if (sent.depositTo !== null)
      await fundPayout(dependencies, sent, gatewayAuthorization(wallet, payout.keyId))
  } catch (error) {
    // It has ended: its money is available again.
    if (!(error instanceof Failure) || error.code !== 'payout_rejected') throw error
  }
}

async function stop(
  { database, log, clock }: SendPayoutDependencies,
  { id, createdAt }: Payout,
  reason: string,
): Promise<void> {
  const reported = { createdAt: createdAt.toISOString() }
  await raiseAlarm({ database, log }, { domain: 'banking', objectId: id, reason, reported, at: clock() })
}
