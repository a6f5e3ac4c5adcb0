/**
 * Every background job of a gateway, and how long it waits between rounds. Jobs finish what a crash or a slow provider left
 * open, and run on every gateway at once.
 */

import { noticeExpiredApprovals } from '../../books/approvals/approvals.ts'
import { timers } from '../../core/base/timers.ts'
import type { Services } from '../../kernel/context.ts'
import { finishApprovals } from '../../kernel/run-approved.ts'
import { sendWaitingNotices } from '../../people/identity/security-notices.ts'
import { findIssuedKey } from '../../people/identity/store.ts'
import { closeChannels } from '../../rails/buying/channels/close-channel.ts'
import { sendCardStates } from '../../rails/cards/send-states.ts'
import { followBrokerageAccounts } from '../../rails/investing/brokerage-account.ts'
import { payDividends } from '../../rails/investing/dividends.ts'
import { collectChannels } from '../../rails/selling/payments/collect-channels.ts'
import { createSwapOwners } from '../../rails/wallets/owners/swap-owners.ts'
import { screenKeptDeposits } from '../../rails/wallets/reconcile/release-deposits.ts'
import { anchorHead } from '../../records/decisions/anchor-head.ts'
import { createSealRound } from '../../records/decisions/seal-decisions.ts'
import { keepPartitions } from '../../storage/partitions.ts'
import { collectDebts } from './collect-debts.ts'
import { createDeliverWebhooks } from './deliver-webhooks.ts'
import { every, type Job } from './every.ts'
import { claimingJobs, createHasWork, createShouldClaim, type ShouldClaim } from './find-work.ts'
import { finishOrders } from './finish-orders.ts'
import { createKeepPurses } from './keep-purses.ts'
import { mailOwners } from './mail-owners.ts'
import { matchRequests } from './match-requests.ts'
import { notifyInstitutions } from './notify-institutions.ts'
import { type Pace, steadyWait } from './pace.ts'
import { payCards } from './pay-cards.ts'
import { publishNewEvents } from './publish-events.ts'
import { createPushOwners } from './push-owners.ts'
import { createReconcile } from './reconcile.ts'
import { repayMints } from './repay-mints.ts'
import { createRunSchedules } from './run-schedules.ts'
import { createSendMessages } from './send-messages.ts'
import { settleCards } from './settle-cards.ts'
import { settleFundings } from './settle-fundings.ts'
import { settleOrders } from './settle-orders.ts'
import { settlePayments } from './settle-payments.ts'
import { settlePayouts } from './settle-payouts.ts'
import { settlePending } from './settle-pending.ts'
import { settlePurchases } from './settle-purchases.ts'
import { settleRecourse } from './settle-recourse.ts'
import { settleRelays } from './settle-relays.ts'
import { settleReviews } from './settle-reviews.ts'
import { settleSwaps } from './settle-swaps.ts'
import { sweep } from './sweep.ts'
import { warnBudgets } from './warn-budgets.ts'
import { createWatchChain } from './watch-chain.ts'

/** So soon after an activity, what waits for a delivery is claimed without asking before. */
const FRESH_MS = 2_000

/** Addresses that one round sends notices to. */
const NOTICE_BATCH = 20

/** The result is the number of open items that were found; any other result is not activity. */
type JobRound = (services: Services, signal: AbortSignal, shouldClaim: ShouldClaim) => Promise<unknown>

interface JobRow {
  readonly name: string
  readonly everyMs: number
  readonly round: JobRound
  /** Runs at its interval at rest, too. */
  readonly isSteady?: true
  /** What it finds wakes the other gateways: whoever follows an account there hears of it at once. */
  readonly isAnnounced?: true
  /** Has work under way between rounds, which it counts; so it asks itself whether to claim. */
  readonly hasWorkers?: true
  /** Runs on each chain by itself, so that a chain that does not answer holds up no other. */
  readonly isOnEachChain?: true
}

/** Creates the round of a job that keeps state between rounds. */
const stateful = (
  create: (services: Services, shouldClaim: ShouldClaim) => (signal: AbortSignal) => Promise<unknown>,
): JobRound => {
  let round: ReturnType<typeof create> | undefined
  return (services, signal, shouldClaim) => {
    round ??= create(services, shouldClaim)
    return round(signal)
  }
}

const table = (mode: Services['settings']['mode'], pace: Pace): readonly JobRow[] => [
  { name: 'seal-decisions', everyMs: 500, round: stateful(createSealRound) },
  { name: 'anchor-decisions', everyMs: 30_000, round: anchorHead, isOnEachChain: true },
  { name: 'publish-events', everyMs: 100, round: publishNewEvents, isAnnounced: true },
  { name: 'deliver-webhooks', everyMs: 250, round: stateful(createDeliverWebhooks), hasWorkers: true },
  { name: 'mail-owners', everyMs: 1_000, round: mailOwners },
  { name: 'push-owners', everyMs: 1_000, round: stateful(createPushOwners), hasWorkers: true },
  { name: 'send-messages', everyMs: 1_000, round: stateful(createSendMessages), hasWorkers: true },
  { name: 'warn-budgets', everyMs: 5_000, round: warnBudgets },
  { name: 'settle-pending', everyMs: 1_000, round: settlePending, isOnEachChain: true },
  { name: 'settle-swaps', everyMs: 1_000, round: settleSwaps, isOnEachChain: true },
  { name: 'settle-fundings', everyMs: 1_000, round: settleFundings },
  { name: 'settle-payments', everyMs: 1_000, round: settlePayments, isOnEachChain: true },
  { name: 'collect-channels', everyMs: 15_000, round: collectChannels, isOnEachChain: true },
  { name: 'settle-relays', everyMs: 1_000, round: settleRelays, isOnEachChain: true },
  { name: 'settle-purchases', everyMs: 1_000, round: settlePurchases, isOnEachChain: true },
  { name: 'close-channels', everyMs: 2_000, round: closeChannels },
  { name: 'settle-recourse', everyMs: 1_000, round: settleRecourse },
  { name: 'settle-orders', everyMs: 1_000, round: settleOrders },
  { name: 'settle-payouts', everyMs: 1_000, round: settlePayouts },
  { name: 'settle-cards', everyMs: 1_000, round: settleCards },
  { name: 'pay-cards', everyMs: 1_000, round: payCards, isOnEachChain: true },
  { name: 'send-card-states', everyMs: 1_000, round: sendCardStates },
  { name: 'collect-debts', everyMs: 1_000, round: collectDebts },
  // Deposits come unannounced. Without new blocks a round reads the chain only.
  {
    name: 'watch-chain',
    everyMs: 1_000,
    round: stateful(createWatchChain),
    isSteady: true,
    isOnEachChain: true,
  },
  { name: 'notify-institutions', everyMs: 1_000, round: notifyInstitutions },
  { name: 'finish-orders', everyMs: 2_000, round: finishOrders },
  // A due time comes unannounced. Until the next one that is known, a round reads nothing.
  {
    name: 'run-schedules',
    everyMs: 1_000,
    round: stateful((services) => createRunSchedules(services, pace.lastActivity)),
    isSteady: true,
  },
  { name: 'match-requests', everyMs: 500, round: matchRequests },
  {
    name: 'finish-approvals',
    everyMs: 2_000,
    round: async (services, signal) => {
      await noticeExpiredApprovals(services.database, services.onCalendar(services.clock()))
      return finishApprovals(services, findIssuedKey, signal)
    },
  },
  {
    name: 'send-notices',
    everyMs: 5_000,
    round: (services) => sendWaitingNotices(services, { most: NOTICE_BATCH, now: services.clock() }),
  },
  { name: 'settle-reviews', everyMs: 2_000, round: settleReviews },
  { name: 'keep-purses', everyMs: 5_000, round: stateful(createKeepPurses), isOnEachChain: true },
  { name: 'swap-owners', everyMs: 1_000, round: stateful(createSwapOwners), isOnEachChain: true },
  { name: 'screen-deposits', everyMs: 5_000, round: screenKeptDeposits, isOnEachChain: true },
  { name: 'reconcile', everyMs: 5_000, round: stateful(createReconcile), isOnEachChain: true },
  { name: 'pay-dividends', everyMs: mode === 'sandbox' ? 5_000 : 60_000, round: payDividends },
  { name: 'follow-brokerage', everyMs: 30_000, round: followBrokerageAccounts },
  {
    name: 'keep-partitions',
    everyMs: 3_600_000,
    round: ({ database, onCalendar, clock }) => keepPartitions(database, onCalendar(clock())),
  },
  { name: 'sweep', everyMs: 300_000, round: sweep },
  ...(mode === 'sandbox'
    ? [{ name: 'repay-mints', everyMs: 2_000, round: repayMints, isOnEachChain: true as const }]
    : []),
]

/** @property job name in the table, without a chain. */
interface StartedRow extends JobRow {
  readonly job: string
}

/** The jobs of one chain, with state of their own; those that are not of a chain run once, with the default. */
function jobsOn(services: Services, chain: Services['chain'], pace: Pace) {
  const isDefault = chain.name === services.chain.name
  return table(services.settings.mode, pace)
    .filter(({ isOnEachChain }) => isDefault || isOnEachChain)
    .map(({ name, round, ...row }) => ({
      ...row,
      job: name,
      name: isDefault ? name : `${name} ${chain.name}`,
      round: (_services: Services, ...rest: [AbortSignal, ShouldClaim]) =>
        round({ ...services, chain }, ...rest),
    }))
}

/**
 * Starts every job. @param options `setClock` sets the clock that gateways on one database share; `factor` lengthens every
 * pause, for simulations.
 */
export function startJobs(
  services: Services,
  pace: Pace,
  { setClock, factor = 1 }: { setClock: () => Promise<void>; factor?: number | undefined },
): readonly Job[] {
  const { log, chains } = services
  const steady: Pace = { ...pace, wait: steadyWait }
  const hasWork = createHasWork(services)
  const start = ({ name, job, everyMs, round, isSteady, isAnnounced, hasWorkers }: StartedRow): Job => {
    const asking = claimingJobs.has(job) ? createShouldClaim(() => hasWork(job)) : async () => true
    const isFresh = () => hasWorkers === true && timers.monotonic() - pace.lastActivity() < FRESH_MS
    const shouldClaim = async () => isFresh() || asking()
    return every(everyMs * factor, {
      name,
      round: async (signal) => {
        if (!hasWorkers && !(await shouldClaim())) return 0
        const found = await round(services, signal, shouldClaim)
        return typeof found === 'number' ? found : 0
      },
      log,
      isAnnounced,
      pace: isSteady ? steady : pace,
    })
  }
  const rows: readonly StartedRow[] = [
    ...chains.all.flatMap((chain) => jobsOn(services, chain, pace)),
    { name: 'set-clock', job: 'set-clock', everyMs: 30_000, round: setClock, isSteady: true },
  ]
  const jobs = rows.map(start)
  chains.onJoin((chain) => void jobs.push(...jobsOn(services, chain, pace).map(start)))
  return jobs
}
