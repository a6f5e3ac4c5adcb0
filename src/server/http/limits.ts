/**
 * Rate limits of requests. Clients are counted by address, keys and people each in windows of their own. Counts that a
 * request took before a limit refuses it are refunded, so that a refused request counts nowhere else.
 */
import { findNetwork } from '../../core/base/address-range.ts'
import type { Principal } from '../../core/base/principal.ts'
import type { Services } from '../../kernel/context.ts'
import {
  countRequests,
  type RateReading,
  type RateWindow,
  refundRequests,
  requireWithinLimit,
} from '../../kernel/gates/rate.ts'
import { readKnownBrowser } from './authenticate.ts'
import type { HttpContext } from './request.ts'

/**
 * Options of a rate limit. @property isMetered the request carries a payment: it is counted separately and refunded
 * once it has paid, so only payments that fail use up the limit.
 */
export interface RateLimitDependencies {
  readonly failClosed: boolean
  readonly isMetered: boolean
}

/** Limit of an IPv6 /48, as a multiple of that of a /64: one site has 65,536 of them. */
const NETWORK_SHARE = 16

/** Windows of an address in a class: its own, and that of its IPv6 /48. */
function addressWindows(rateClass: string, address: string, suffix = ''): RateWindow[] {
  const network = findNetwork(address)
  return [
    { rateClass, client: `${address}${suffix}` },
    ...(network === null ? [] : [{ rateClass, client: `${network}${suffix}`, share: NETWORK_SHARE }]),
  ]
}

/** Limits the client's address. @throws Failure `rate_limited`, `provider_unavailable`. */
export async function limitAddress(
  services: Services,
  c: HttpContext,
  rateClass: string,
  { failClosed, isMetered }: RateLimitDependencies,
): Promise<void> {
  const restarts = isMetered ? ({ restarts: false } as const) : {}
  const [own] = await count(services, c, meteredWindows(c, rateClass, isMetered), { failClosed, ...restarts })
  if (own !== undefined && !isMetered) c.set('reading', own)
}

/** Refunds the rate-limit count of a request after its payment succeeded. */
export async function unlimitAddress(services: Services, c: HttpContext, rateClass: string): Promise<void> {
  const windows = new Set(meteredWindows(c, rateClass, true).map(({ client }) => client))
  const isPaid = (reading: RateReading) => reading.rateClass === rateClass && windows.has(reading.client)
  const counted = c.get('counted') ?? []
  c.set(
    'counted',
    counted.filter((reading) => !isPaid(reading)),
  )
  await refundRequests(services, counted.filter(isPaid), c.get('now'))
}

/** Counts paid requests separately, so a client that has used up its challenges can still pay. */
function meteredWindows(c: HttpContext, rateClass: string, isMetered: boolean): RateWindow[] {
  return addressWindows(rateClass, c.get('clientAddress'), isMetered ? ' metered' : '')
}

/**
 * Limits the key and all keys of its account, or the account's people, in addition to the client address. Keys never
 * count into the window of their owner. @throws Failure `rate_limited`.
 */
export async function limitCaller(services: Services, c: HttpContext): Promise<void> {
  const { principal } = c.get('caller')
  await count(services, c, callerWindows(principal), { failClosed: false })
}

function callerWindows(principal: Principal): RateWindow[] {
  if (principal.kind === 'public') return []
  if (principal.kind === 'session') return [{ rateClass: 'account', client: principal.person.id }]
  const { account } = principal
  return [
    { rateClass: 'key', client: principal.key.id },
    { rateClass: 'account', client: `${account.id} keys` },
  ]
}

/**
 * Limits an operation that stops money, or a sign-in: by the session, key or known browser alone, so that nobody else can
 * use up the budget, and an unreachable store stops nobody. Strangers count by address. @throws Failure `rate_limited`.
 */
export async function limitStop(services: Services, c: HttpContext): Promise<void> {
  const client = stopClient(services, c)
  if (client === null) return limitAddress(services, c, 'mutations', { failClosed: true, isMetered: false })
  const [own] = await count(services, c, [{ rateClass: 'stops', client }], { failClosed: false })
  if (own !== undefined) c.set('reading', own)
}

/** The session, key, or browser known from an earlier sign-in; null for strangers. */
function stopClient({ settings }: Services, c: HttpContext): string | null {
  const { principal } = c.get('caller')
  if (principal.kind === 'session') return principal.session.id
  if (principal.kind === 'key') return principal.key.id
  return readKnownBrowser(settings, c)?.id ?? null
}

/** Refunds all counts of a request that a limit refused. */
export async function refundCounted(services: Services, c: HttpContext): Promise<void> {
  const counted = c.get('counted') ?? []
  c.set('counted', [])
  await refundRequests(services, counted, c.get('now'))
}

async function count(
  services: Services,
  c: HttpContext,
  windows: readonly RateWindow[],
  options: { readonly failClosed: boolean; readonly restarts?: false },
): Promise<readonly RateReading[]> {
  const readings = await countRequests(services, { windows, now: c.get('now'), ...options })
  c.set('counted', [...(c.get('counted') ?? []), ...readings.filter(({ allowed }) => allowed)])
  const refused = readings.find(({ allowed }) => !allowed)
  if (refused === undefined) return readings
  c.set('reading', refused)
  requireWithinLimit(refused)
  return readings
}
