import { timers } from '../../core/base/timers.ts'

/** Jobs are at rest from this long after the last activity on. */
const ACTIVE_MS = 60_000

/**
 * Until then a job pauses for at most this share of the time since: what falls due meanwhile is late by no more than that.
 * Pauses end at common times, each this share after the one before, so that jobs ask the database together.
 */
const PAUSE_SHARE = 0.25

/** Pause between sweeps at rest. They find work whose announcement was lost. */
const REST_MS = 60_000

/** Shortest time between two announcements to other gateways, which therefore run behind this one by no more. */
const ANNOUNCE_MS = 250

/** Decides how often jobs run: at their interval while work may be open, less and less from then on, and rarely at rest. */
export interface Pace {
  /** Records a write by a client or a job of this gateway, and announces it to the other gateways. */
  noteWrite(): void
  /** Records activity elsewhere: another gateway's announcement, or open work that a job found. */
  noteActivity(): void
  /** Monotonic milliseconds of the last activity. */
  lastActivity(): number
  /** Waits until a job's next round. @returns false when the signal was aborted. */
  wait(intervalMs: number, signal: AbortSignal): Promise<boolean>
}

/** @param announce tells the other gateways that work may be open. @param now monotonic milliseconds. */
export function createPace(
  { announce, now = () => timers.monotonic() }: { announce: () => void; now?: () => number },
  { activeMs = ACTIVE_MS, restMs = REST_MS }: { activeMs?: number; restMs?: number } = {},
): Pace {
  // A start is activity: its predecessor may have left work open.
  let activeAt = now()
  let announcedAt = Number.NEGATIVE_INFINITY
  let isAnnouncing = false
  const resting = new Set<() => void>()
  const noteActivity = () => {
    activeAt = now()
    for (const wake of [...resting]) wake()
  }
  return {
    noteActivity,
    lastActivity: () => activeAt,
    noteWrite: () => {
      noteActivity()
      if (isAnnouncing) return
      isAnnouncing = true
      const ring = () => {
        isAnnouncing = false
        announcedAt = now()
        announce()
      }
      const waitMs = announcedAt + ANNOUNCE_MS - now()
      if (waitMs <= 0) ring()
      else timers.after(waitMs, ring, { isIdle: true })
    },
    wait: async (intervalMs, signal) => {
      const quietMs = now() - activeAt
      const pauseMs = quietMs < activeMs ? pauseAfter(quietMs) : restMs
      if (pauseMs <= intervalMs) return steadyWait(intervalMs, signal)
      // Activity ends a longer pause early; the round then keeps its interval.
      const isWoken = await pauseUntilWoken(pauseMs, signal, resting)
      return isWoken ? steadyWait(intervalMs, signal) : !signal.aborted
    },
  }
}

/** @returns milliseconds until the next common time after the last activity. */
function pauseAfter(quietMs: number): number {
  if (quietMs <= 1) return 0
  const growth = 1 + PAUSE_SHARE
  const step = Math.floor(Math.log(quietMs) / Math.log(growth))
  const next = [step, step + 1, step + 2]
    .map((exponent) => growth ** exponent)
    .find((end) => end > quietMs + 1)
  return (next ?? quietMs * growth) - quietMs
}

/** Waits an interval without regard to activity. @returns false when the signal was aborted. */
export async function steadyWait(ms: number, signal: AbortSignal): Promise<boolean> {
  await pauseUntilWoken(ms, signal, new Set())
  return !signal.aborted
}

/** @returns whether it was woken before the time had passed. */
function pauseUntilWoken(ms: number, signal: AbortSignal, sleepers: Set<() => void>): Promise<boolean> {
  return new Promise((resolve) => {
    const end = (isWoken: boolean) => {
      cancel()
      sleepers.delete(wake)
      signal.removeEventListener('abort', stop)
      resolve(isWoken)
    }
    const wake = () => end(true)
    const stop = () => end(false)
    const cancel = timers.after(ms, stop)
    sleepers.add(wake)
    signal.addEventListener('abort', stop, { once: true })
    if (signal.aborted) stop()
  })
}
