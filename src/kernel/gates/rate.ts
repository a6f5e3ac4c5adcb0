/** Rate limits. */
import { Failure } from '../../failures/failure.ts'
import type { RateBudget, RateVerdict } from '../../providers/rate-limiter.ts'
import type { Services, Settings } from '../context.ts'

/**
 * Result of a limit check, for the RateLimit headers.
 * @see https://datatracker.ietf.org/doc/draft-ietf-httpapi-ratelimit-headers/
 */
export interface RateReading extends RateVerdict {
  readonly rateClass: string
  readonly count: number
  readonly seconds: number
}

/**
 * Counts one request of a client in a class. @param restarts false: refused requests never restart the window.
 * @param failClosed rejects the request when the shared store is unreachable. @returns null if the class has no limit or the
 * store is unreachable. @throws Failure `rate_limited` with `retryAfter`, `provider_unavailable`.
 */
export async function countRequest(
  {
    settings,
    rateLimiter,
    log,
  }: Pick<Services, 'rateLimiter' | 'log'> & { readonly settings: Pick<Settings, 'rateLimits'> },
  {
    rateClass,
    client,
    now,
    failClosed,
    restarts,
  }: { rateClass: string; client: string; now: Date; failClosed: boolean; restarts?: false },
): Promise<RateReading | null> {
  const limit = settings.rateLimits.get(rateClass)
  if (limit === undefined) return null
  try {
    const verdict = await rateLimiter.take(
      `${rateClass}:${client}`,
      restarts === undefined ? limit : { ...limit, restarts },
      now,
    )
    return { ...verdict, rateClass, ...limit }
  } catch (cause) {
    log.error({ err: cause, rateClass }, 'reading rate limits failed')
    if (!failClosed) return null
    throw new Failure(
      'provider_unavailable',
      'Rate limits are unavailable; the request had no effect.',
      { retryAfter: 2 },
      { cause },
    )
  }
}

/**
 * Counts one request in several classes, in one round trip. Classes without a limit are skipped; an unreachable store counts
 * nothing.
 */
export async function countCaller(
  { settings, rateLimiter, log }: Parameters<typeof countRequest>[0],
  counted: readonly { readonly rateClass: string; readonly client: string }[],
  now: Date,
): Promise<readonly RateReading[]> {
  const windows = counted.flatMap(({ rateClass, client }) => {
    const limit = settings.rateLimits.get(rateClass)
    return limit === undefined ? [] : [{ rateClass, key: `${rateClass}:${client}`, limit }]
  })
  if (windows.length === 0) return []
  try {
    const verdicts = await rateLimiter.takeAll(windows, now)
    return windows.flatMap(({ rateClass, limit }, index) => {
      const verdict = verdicts[index]
      return verdict === undefined ? [] : [{ ...verdict, rateClass, ...limit }]
    })
  } catch (cause) {
    log.error(
      { err: cause, classes: windows.map(({ rateClass }) => rateClass) },
      'reading rate limits failed',
    )
    return []
  }
}

/** Refunds a count. If the store is unreachable, the count remains until its window ends. */
export async function refundRequest(
  { settings, rateLimiter, log }: Parameters<typeof countRequest>[0],
  { rateClass, client, now }: { rateClass: string; client: string; now: Date },
): Promise<void> {
  const limit = settings.rateLimits.get(rateClass)
  if (limit === undefined) return
  await rateLimiter
    .giveBack(`${rateClass}:${client}`, limit, now)
    .catch((err: unknown) => log.error({ err, rateClass }, 'refunding a rate limit failed'))
}

/** @throws Failure `rate_limited` when the reading exceeds the limit. */
export function requireWithinLimit(reading: RateReading): void {
  if (reading.allowed) return
  throw new Failure('rate_limited', `More than ${reading.count} requests in ${reading.seconds} s.`, {
    retryAfter: reading.resetSeconds,
    hint: `Wait ${reading.resetSeconds} s; an earlier request restarts the wait.`,
  })
}

/**
 * Counts one request in each budget, in order; the first exhausted one rejects it, and later ones are not charged.
 * Rejected requests do not extend a budget, because unauthenticated callers can send them for another person's
 * address. @returns whole seconds until all budgets accept another request; 0 if immediately.
 * @throws Failure `rate_limited` with `retryAfter`; `provider_unavailable` when the shared store is unreachable.
 */
export async function takeBudgets(
  services: Parameters<typeof countRequest>[0],
  budgets: readonly RateBudget[],
  now: Date,
): Promise<number> {
  let waitSeconds = 0
  for (const { endsAt, ...budget } of budgets) {
    const reading = await countRequest(services, { ...budget, now, failClosed: true, restarts: false })
    if (reading === null) continue
    const leftSeconds =
      endsAt === null ? Number.POSITIVE_INFINITY : Math.ceil((endsAt.getTime() - now.getTime()) / 1000)
    const resetSeconds = Math.min(reading.resetSeconds, leftSeconds)
    requireWithinLimit({ ...reading, resetSeconds })
    if (reading.remaining === 0) waitSeconds = Math.max(waitSeconds, resetSeconds)
  }
  return waitSeconds
}

/**
 * Counts an operation against the account's daily budget of sponsored gas; nothing is counted on gas-free chains.
 * @throws Failure `rate_limited` with `retryAfter`; `provider_unavailable` when the shared store is unreachable.
 */
export async function takeSponsorship(
  context: Parameters<typeof countRequest>[0] & Pick<Services, 'chain'>,
  accountId: string,
  now: Date,
): Promise<void> {
  if (context.chain.isGasFree) return
  await takeBudgets(context, [{ rateClass: 'sponsored', client: accountId, endsAt: null }], now)
}
