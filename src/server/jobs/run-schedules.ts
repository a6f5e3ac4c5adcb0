/** Makes scheduled calls at their due times, and goes on with those that a crash or a slow provider left. */
import { timers } from '../../core/base/timers.ts'
import type { Services } from '../../kernel/context.ts'
import { findAccount, findIssuedKey } from '../../people/identity/store.ts'

/** Longest time between two reads of the next due time: a schedule of another gateway whose announcement was lost is late by that. */
const READ_MS = 20_000

export function createRunSchedules(
  services: Services,
  lastActivity: () => number,
): (signal: AbortSignal) => Promise<number> {
  const { scheduling } = services
  return createDueRounds({
    findWaitMs: () => scheduling.findWaitMs(services),
    runDue: (signal) => scheduling.runDue(services, { findKey: findIssuedKey, findAccount }, signal),
    lastActivity,
  })
}

/**
 * Creates rounds that read the next due time after activity and every {@link READ_MS}, and nothing in between.
 * @param parts `lastActivity` is the monotonic time of the last activity, which may have changed what is due.
 */
export function createDueRounds({
  findWaitMs,
  runDue,
  lastActivity,
}: {
  findWaitMs: () => Promise<number>
  runDue: (signal: AbortSignal) => Promise<number>
  lastActivity: () => number
}): (signal: AbortSignal) => Promise<number> {
  let readAt = Number.NEGATIVE_INFINITY
  let dueAt = Number.NEGATIVE_INFINITY
  return async (signal) => {
    const now = timers.monotonic()
    const isKnown = lastActivity() < readAt && now - readAt < READ_MS
    if (isKnown && now < dueAt) return 0
    readAt = now
    // A read that fails is repeated in the next round.
    dueAt = now
    const waitMs = await findWaitMs()
    dueAt = now + waitMs
    return waitMs > 0 ? 0 : runDue(signal)
  }
}
