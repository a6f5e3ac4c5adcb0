/**
 * Every background job of a gateway, and how long it waits between rounds. Jobs finish what a crash or a slow provider left
 * open, and run on every gateway at once.
 */
import { createSealRound } from '../audit/seal-decisions.ts'
import { findKey } from '../identity/store.ts'
import { payDividends } from '../investing/dividends.ts'
import type { Services } from '../kernel/context.ts'
import { finishApprovals } from '../kernel/run-approved.ts'
import { collectDebts } from './collect-debts.ts'
import { every, type Job } from './every.ts'
import { finishOrders } from './finish-orders.ts'
import { notifyInstitutions } from './notify-institutions.ts'
import { createReconcile } from './reconcile.ts'
import { repayMints } from './repay-mints.ts'
import { settleCards } from './settle-cards.ts'
import { settleOrders } from './settle-orders.ts'
import { settlePayments } from './settle-payments.ts'
import { settlePending } from './settle-pending.ts'
import { settleRelays } from './settle-relays.ts'
import { settleReviews } from './settle-reviews.ts'
import { sweep } from './sweep.ts'
import { createWatchChain } from './watch-chain.ts'

type Round = (services: Services, signal: AbortSignal) => Promise<unknown>

/** Starts a round of a job that keeps state between rounds. */
const stateful = (create: (services: Services) => (signal: AbortSignal) => Promise<unknown>): Round => {
  let round: ReturnType<typeof create> | undefined
  return (services, signal) => {
    round ??= create(services)
    return round(signal)
  }
}

const table = (
  mode: Services['settings']['mode'],
): readonly (readonly [name: string, everyMs: number, round: Round])[] => [
  ['seal-decisions', 500, stateful(createSealRound)],
  ['settle-pending', 1_000, settlePending],
  ['settle-payments', 1_000, settlePayments],
  ['settle-relays', 1_000, settleRelays],
  ['settle-orders', 1_000, settleOrders],
  ['settle-cards', 1_000, settleCards],
  ['collect-debts', 1_000, collectDebts],
  ['watch-chain', 1_000, stateful(createWatchChain)],
  ['notify-institutions', 1_000, notifyInstitutions],
  ['finish-orders', 2_000, finishOrders],
  ['finish-approvals', 2_000, (services, signal) => finishApprovals(services, findKey, signal)],
  ['settle-reviews', 2_000, settleReviews],
  ['reconcile', 5_000, stateful(createReconcile)],
  ['pay-dividends', mode === 'sandbox' ? 5_000 : 60_000, payDividends],
  ['sweep', 60_000, sweep],
  ...(mode === 'sandbox' ? [['repay-mints', 2_000, repayMints] as const] : []),
]

/** Starts every job. @param setClock sets the clock that gateways on one database share. */
export function startJobs(services: Services, setClock: () => Promise<void>): readonly Job[] {
  const { log, settings } = services
  const rounds: ReturnType<typeof table> = [...table(settings.mode), ['set-clock', 30_000, setClock]]
  return rounds.map(([name, everyMs, round]) =>
    every(everyMs, { name, round: async (signal) => void (await round(services, signal)), log }),
  )
}
