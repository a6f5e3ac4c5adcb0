import type { RateLimit, RateVerdict } from './port.ts'

/**
 * A window as stored.
 * @property openedMs milliseconds since 1970.
 * @property count limit + 1 after the first rejection, limit + 2 after further ones.
 */
export interface Window {
  readonly openedMs: number
  readonly count: number
}

/** Derives the verdict on a request from its window, which already counts the request. */
export function toVerdict({ openedMs, count }: Window, limit: RateLimit, now: Date): RateVerdict {
  const leftMs = openedMs + limit.seconds * 1000 - now.getTime()
  return {
    allowed: count <= limit.count,
    remaining: Math.max(limit.count - count, 0),
    resetSeconds: Math.max(Math.ceil(leftMs / 1000), 1),
  }
}
