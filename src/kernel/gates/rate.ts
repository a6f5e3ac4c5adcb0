/** Limits on how often a client may ask. */
import { Failure } from '../../failures/failure.ts'
import type { RateBudget, RateVerdict } from '../../providers/rate-limiter.ts'
import type { Services, Settings } from '../context.ts'

/** What a limit found, for the RateLimit headers. @see https://datatracker.ietf.org/doc/draft-ietf-httpapi-ratelimit-headers/ */
export interface RateReading extends RateVerdict {
  readonly rateClass: string
  readonly count: number
  readonly seconds: number
}

/**
 * Counts one request of a client in a class.
 * @param restarts false: refused requests never restart the window.
 * @param failClosed whether the request must not go on where the shared store cannot be reached.
 * @returns null where the class has no limit or the store could not be asked.
 * @throws Failure `rate_limited` with `retryAfter`, `provider_unavailable`.
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
    log.error({ err: cause, rateClass }, 'rate limits cannot be read')
    if (!failClosed) return null
    throw new Failure(
      'provider_unavailable',
      'Rate limits cannot be read; nothing was done.',
      { retryAfter: 2 },
      { cause },
    )
  }
}

/** Undoes a count. Where the shared store cannot be reached the count stays: it ends with its window. */
export async function refundRequest(
  { settings, rateLimiter, log }: Parameters<typeof countRequest>[0],
  { rateClass, client, now }: { rateClass: string; client: string; now: Date },
): Promise<void> {
  const limit = settings.rateLimits.get(rateClass)
  if (limit === undefined) return
  await rateLimiter
    .giveBack(`${rateClass}:${client}`, limit, now)
    .catch((err: unknown) => log.error({ err, rateClass }, 'a count of a rate limit cannot be undone'))
}

/** @throws Failure `rate_limited` where the reading is over the limit. */
export function requireWithinLimit(reading: RateReading): void {
  if (reading.allowed) return
  throw new Failure('rate_limited', `More than ${reading.count} requests in ${reading.seconds} s.`, {
    retryAfter: reading.resetSeconds,
    hint: `Wait ${reading.resetSeconds} s; a request before that starts the wait anew.`,
  })
}

/**
 * Counts one request in every budget, in order; the first that is used up refuses it, and those after it are not touched.
 * Refused requests lengthen no budget: strangers can make them in the name of an address that is not theirs.
 * @returns whole seconds until all of them take another; 0 where they would at once.
 * @throws Failure `rate_limited` with `retryAfter`; `provider_unavailable` where the shared store cannot be reached.
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
 * Counts an operation against what the sponsor pays for an account in a day. Where gas is of no worth nothing is counted.
 * @throws Failure `rate_limited` with `retryAfter`; `provider_unavailable` where the shared store cannot be reached.
 */
export async function takeSponsorship(
  context: Parameters<typeof countRequest>[0] & Pick<Services, 'chain'>,
  accountId: string,
  now: Date,
): Promise<void> {
  if (context.chain.isGasFree) return
  await takeBudgets(context, [{ rateClass: 'sponsored', client: accountId, endsAt: null }], now)
}
