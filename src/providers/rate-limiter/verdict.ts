import type { RateLimit, RateVerdict } from '../rate-limiter.ts'

/** A window as every store keeps it. @property openedMs milliseconds since 1970. @property count limit + 1 after the first refusal, limit + 2 after further ones. */
export interface Window {
  readonly openedMs: number
  readonly count: number
}

/** What a window, with the request already counted in it, says of that request. */
export function verdictOf({ openedMs, count }: Window, limit: RateLimit, now: Date): RateVerdict {
  const leftMs = openedMs + limit.seconds * 1000 - now.getTime()
  return {
    allowed: count <= limit.count,
    remaining: Math.max(limit.count - count, 0),
    resetSeconds: Math.max(Math.ceil(leftMs / 1000), 1),
  }
}
