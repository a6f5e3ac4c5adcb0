/** Rate limits. */
import type { Account, AccountPrincipal } from '../../core/base/principal.ts'
import { Failure } from '../../core/failures/failure.ts'
import type { RateBudget, RateVerdict } from '../../providers/rate-limiter/port.ts'
import type { Services, Settings } from '../context.ts'

/** A window to count in. @property share multiple of the limit of its class; default 1. */
export interface RateWindow {
  readonly rateClass: string
  readonly client: string
  readonly share?: number
}

/**
 * Result of a limit check, for the RateLimit headers.
 * @see https://datatracker.ietf.org/doc/draft-ietf-httpapi-ratelimit-headers/
 */
export interface RateReading extends RateVerdict {
  readonly rateClass: string
  readonly client: string
  readonly count: number
  readonly seconds: number
}

type LimitDependencies = Pick<Services, 'rateLimiter' | 'log'> & {
  readonly settings: Pick<Settings, 'rateLimits'>
}

/**
 * Counts one request in several windows, in one round trip; windows of classes without a limit are skipped.
 * @param restarts false: refused requests never restart the window. @param failClosed rejects the request when the shared
 * store is unreachable, otherwise nothing is counted then. @throws Failure `provider_unavailable`.
 */
export async function countRequests(
  { settings, rateLimiter, log }: LimitDependencies,
  {
    windows,
    now,
    failClosed,
    restarts,
  }: { windows: readonly RateWindow[]; now: Date; failClosed: boolean; restarts?: false },
): Promise<readonly RateReading[]> {
  const counted = windows.flatMap(({ rateClass, client, share = 1 }) => {
    const limit = settings.rateLimits.get(rateClass)
    if (limit === undefined) return []
    const { count, seconds } = limit
    return [{ rateClass, client, count: count * share, seconds }]
  })
  if (counted.length === 0) return []
  try {
    const verdicts = await rateLimiter.takeAll(
      counted.map(({ rateClass, client, count, seconds }) => ({
        key: `${rateClass}:${client}`,
        limit: restarts === undefined ? { count, seconds } : { count, seconds, restarts },
      })),
      now,
    )
    return counted.flatMap((window, index) => {
      const verdict = verdicts[index]
      return verdict === undefined ? [] : [{ ...verdict, ...window }]
    })
  } catch (cause) {
    const classes = counted.map(({ rateClass }) => rateClass)
    log.error({ err: cause, classes }, 'reading rate limits failed')
    if (!failClosed) return []
    throw new Failure(
      'provider_unavailable',
      'Rate limits are unavailable; the request had no effect.',
      { retryAfter: 2 },
      { cause },
    )
  }
}

/**
 * Counts one request of a client in a class, as {@link countRequests}. @returns null if the class has no limit or the store
 * is unreachable. @throws Failure `provider_unavailable`.
 */
export async function countRequest(
  services: LimitDependencies,
  {
    rateClass,
    client,
    ...options
  }: { rateClass: string; client: string; now: Date; failClosed: boolean; restarts?: false },
): Promise<RateReading | null> {
  const [reading = null] = await countRequests(services, { ...options, windows: [{ rateClass, client }] })
  return reading
}

/** Refunds counts. If the store is unreachable, they remain until their windows end. */
export async function refundRequests(
  { rateLimiter, log }: Pick<LimitDependencies, 'rateLimiter' | 'log'>,
  counted: readonly RateReading[],
  now: Date,
): Promise<void> {
  await Promise.all(
    counted.map(({ rateClass, client, count, seconds }) =>
      rateLimiter
        .giveBack(`${rateClass}:${client}`, { count, seconds }, now)
        .catch((err: unknown) => log.error({ err, rateClass }, 'refunding a rate limit failed')),
    ),
  )
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
 * Counts one request in each budget, in order; the first exhausted one rejects it, later ones are not charged, and
 * earlier ones are refunded. Rejected requests do not extend a budget, because unauthenticated callers can send them
 * for another person's address. @returns the readings, for {@link secondsUntilFree}.
 * @throws Failure `rate_limited` with `retryAfter`; `provider_unavailable` when the shared store is unreachable.
 */
export async function takeBudgets(
  services: LimitDependencies,
  budgets: readonly RateBudget[],
  now: Date,
): Promise<readonly RateReading[]> {
  const taken: RateReading[] = []
  for (const { endsAt, ...window } of budgets) {
    const [counted] = await countRequests(services, {
      windows: [window],
      now,
      failClosed: true,
      restarts: false,
    })
    if (counted === undefined) continue
    const leftSeconds =
      endsAt === null ? Number.POSITIVE_INFINITY : Math.ceil((endsAt.getTime() - now.getTime()) / 1000)
    const reading = { ...counted, resetSeconds: Math.min(counted.resetSeconds, leftSeconds) }
    if (!reading.allowed) await refundRequests(services, taken, now)
    requireWithinLimit(reading)
    taken.push(reading)
  }
  return taken
}

/** @returns whole seconds until all budgets accept another request; 0 if immediately. */
export function secondsUntilFree(readings: readonly RateReading[]): number {
  const full = readings.filter(({ remaining }) => remaining === 0)
  return Math.max(0, ...full.map(({ resetSeconds }) => resetSeconds))
}

/**
 * Counts an operation against the daily budget of sponsored gas: the owner's, or that of all keys of the account, which
 * cannot use up the owner's. Nothing is counted on gas-free chains.
 * @throws Failure `rate_limited` with `retryAfter`; `provider_unavailable` when the shared store is unreachable.
 */
export async function takeSponsorship(
  context: LimitDependencies & { readonly chain: Pick<Services['chain'], 'isGasFree'> },
  { kind, account }: { readonly kind: AccountPrincipal['kind']; readonly account: Pick<Account, 'id'> },
  now: Date,
): Promise<void> {
  if (context.chain.isGasFree) return
  const client = kind === 'key' ? `${account.id} keys` : account.id
  await takeBudgets(context, [{ rateClass: 'sponsored', client, endsAt: null }], now)
}
