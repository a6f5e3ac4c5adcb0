/** One read for all jobs that are due at the same moment, instead of a claim each that finds nothing. */

import { timers } from '../../core/base/timers.ts'
import type { Services } from '../../kernel/context.ts'
import { callForRow, type Statement } from '../../storage/database.ts'

/** Jobs that become due within this time share a read. */
const GATHER_MS = 20

/** Longest time for which an answer is good: while jobs are busy, their reads do not cost more than their claims did. */
const GOOD_MS = 400

const findWork: Statement = { name: 'jobs_with_work', text: 'select jobs_with_work($1, $2) as jobs' }

/** Jobs that `jobs_with_work` names. A round of theirs does nothing but claim and finish. */
export const claimingJobs: ReadonlySet<string> = new Set([
  'deliver-webhooks',
  'push-owners',
  'send-messages',
  'mail-owners',
  'settle-pending',
  'settle-swaps',
  'settle-fundings',
  'settle-payments',
  'settle-relays',
  'settle-purchases',
  'close-channels',
  'settle-recourse',
  'settle-orders',
  'settle-payouts',
  'settle-cards',
  'pay-cards',
  'send-card-states',
  'collect-debts',
  'notify-institutions',
  'finish-orders',
  'match-requests',
  'finish-approvals',
  'send-notices',
  'settle-reviews',
  'screen-deposits',
  'repay-mints',
])

/**
 * Longest time that a job leaves its claim out because the shared read found nothing. The pause at rest is longer, so that a
 * round at rest always claims.
 */
const SWEEP_MS = 59_000

/** Finds out whether a job's claim may find something. @throws when the database cannot be read. */
type HasWork = (job: string) => Promise<boolean>

export function createHasWork({
  database,
  clock,
  onCalendar,
}: Pick<Services, 'database' | 'clock' | 'onCalendar'>): HasWork {
  let found: Promise<ReadonlySet<string>> | undefined
  let foundAt = Number.NEGATIVE_INFINITY
  const read = async () => {
    await timers.sleep(GATHER_MS)
    const at = clock()
    const { jobs } = await callForRow<{ jobs: string[] }>(database, findWork, [at, onCalendar(at)])
    return new Set(jobs)
  }
  return async (job) => {
    if (found === undefined || timers.monotonic() - foundAt > GOOD_MS) {
      foundAt = timers.monotonic()
      found = read()
      // The next call reads again.
      found.catch(() => {
        found = undefined
      })
    }
    return (await found).has(job)
  }
}

/** Finds out whether a round should claim: with work, and as a sweep now and then. @throws when the database cannot be read. */
export type ShouldClaim = () => Promise<boolean>

export function createShouldClaim(hasWork: () => Promise<boolean>): ShouldClaim {
  let claimedAt = Number.NEGATIVE_INFINITY
  return async () => {
    const isSweep = timers.monotonic() - claimedAt >= SWEEP_MS
    if (!isSweep && !(await hasWork())) return false
    claimedAt = timers.monotonic()
    return true
  }
}
