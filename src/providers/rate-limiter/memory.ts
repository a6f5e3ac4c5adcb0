/**
 * Rate limits in memory, for a single process without a shared store. Bounded: beyond the capacity, the least
 * recently seen client starts a new window.
 */
import { LRUCache } from 'lru-cache'
import type { RateLimit, RateLimiter } from './port.ts'
import { toVerdict, type Window } from './verdict.ts'

/** The rate limiter port in memory. @param capacity maximum number of windows. */
export function createMemoryRateLimiter(capacity = 100_000): RateLimiter {
  const windows = new LRUCache<string, Window>({ max: capacity })
  const take = (key: string, limit: RateLimit, now: Date) => {
    const window = after(windows.get(key), limit, now.getTime())
    windows.set(key, window)
    return toVerdict(window, limit, now)
  }
  return {
    take: async (key, limit, now) => take(key, limit, now),
    takeAll: async (taken, now) => taken.map(({ key, limit }) => take(key, limit, now)),
    giveBack: async (key, limit, now) => {
      const window = windows.get(key)
      const passedMs = now.getTime() - (window?.openedMs ?? Number.NaN)
      if (window === undefined || passedMs < 0 || passedMs >= limit.seconds * 1000) return
      windows.set(key, { ...window, count: Math.max(window.count - 1, 0) })
    },
  }
}

/**
 * Computes the window after one more request; every rejected request except the first restarts it, if the limit
 * restarts.
 */
function after(window: Window | undefined, limit: RateLimit, nowMs: number): Window {
  if (window === undefined || nowMs >= window.openedMs + limit.seconds * 1000)
    return { openedMs: nowMs, count: 1 }
  const isRestarted = window.count > limit.count && limit.restarts !== false
  const count = Math.min(window.count, limit.count + 1) + 1
  return { openedMs: isRestarted ? nowMs : window.openedMs, count }
}
