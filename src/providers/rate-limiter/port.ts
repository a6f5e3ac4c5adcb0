/**
 * Rate limits: a window per class and client, opened by the first request. The first request over the limit is
 * rejected with the rest of the window as delay; another one before that restarts the full window (spec 7.2). A
 * request after exactly `retryAfter` succeeds.
 */

/** Requests per number of seconds. @property restarts false: rejected requests never restart the window. */
export interface RateLimit {
  readonly count: number
  readonly seconds: number
  readonly restarts?: false
}

/**
 * A budget to take from. @property client client that is counted. @property share multiple of the limit of its class;
 * default 1. @property endsAt latest end of its window.
 */
export interface RateBudget {
  readonly rateClass: string
  readonly client: string
  readonly share?: number
  readonly endsAt: Date | null
}

/** Verdict on a request. @property resetSeconds whole seconds to the window's end, rounded up, at least 1. */
export interface RateVerdict {
  readonly allowed: boolean
  readonly remaining: number
  readonly resetSeconds: number
}

/**
 * The rate limiter port. Adapters: `redis`, `database`, `memory`. No limit is exceeded across all processes that share the
 * store. Counts that a busy process has taken ahead are missing for the others for a second, or until the window ends if that
 * process ends.
 */
export interface RateLimiter {
  /**
   * Counts one request of a client.
   * @param key class and client, such as `mutations:203.0.113.7`.
   * @throws when the store cannot be reached.
   */
  take(key: string, limit: RateLimit, now: Date): Promise<RateVerdict>
  /** Counts one request in several windows, in one round trip. @returns their verdicts, in order. @throws as `take`. */
  takeAll(
    windows: readonly { readonly key: string; readonly limit: RateLimit }[],
    now: Date,
  ): Promise<readonly RateVerdict[]>
  /**
   * Reverses a count of {@link take} while its window is open, for a request that belonged to another class.
   * @throws as `take`.
   */
  giveBack(key: string, limit: RateLimit, now: Date): Promise<void>
}
