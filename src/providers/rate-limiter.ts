/**
 * Rate limits: a window for each class and client that opens with the first request. The first request over the count is
 * refused with what is left of the window; one more before that has passed restarts it in full (spec 7.2). Waiting exactly
 * `retryAfter` succeeds.
 */

/** How many requests in how many seconds. @property restarts false: refused requests never restart the window. */
export interface RateLimit {
  readonly count: number
  readonly seconds: number
  readonly restarts?: false
}

/** One count to take. @property client whom it is counted for. @property endsAt when its window is over at the latest. */
export interface RateBudget {
  readonly rateClass: string
  readonly client: string
  readonly endsAt: Date | null
}

/** The verdict on one request. @property resetSeconds whole seconds to the window's end, rounded up, at least 1. */
export interface RateVerdict {
  readonly allowed: boolean
  readonly remaining: number
  readonly resetSeconds: number
}

/** The rate limiter port. Adapters: `redis`, `database`, `memory`; exact across all processes that share the store. */
export interface RateLimiter {
  /** Counts one request of a client. @param key class and client, such as `mutations:203.0.113.7`. @throws where the store cannot be reached. */
  take(key: string, limit: RateLimit, now: Date): Promise<RateVerdict>
  /** Undoes a count of {@link take} whose window is still open: the request was none of its class after all. @throws as `take`. */
  giveBack(key: string, limit: RateLimit, now: Date): Promise<void>
}
