/** Liveness, readiness and metrics for operators. */
import { timingSafeEqual } from 'node:crypto'
import { BlockList, isIP } from 'node:net'
import type { Hono } from 'hono'
import { atMostEvery } from '../../core/base/at-most-every.ts'
import { isLoopbackHost } from '../../core/base/origins.ts'
import { type Cancel, timers } from '../../core/base/timers.ts'
import { Failure } from '../../core/failures/failure.ts'
import type { Services } from '../../kernel/context.ts'
import type { Chain } from '../../providers/chain/port.ts'
import { readGauges } from '../../records/gauges/read-gauges.ts'
import { refuseQueryCredentials } from './query-credentials.ts'
import { type Env, type HttpContext, readRawTarget } from './request.ts'

/** Gauges are cached for this long: several scrapers must not multiply the database load. */
const GAUGE_CACHE_MS = 5_000

/** Interval in which readiness asks the same node or provider once, whoever asks for readiness and however often. */
const PROVIDER_CHECK_MS = 500

/** Time limit for one readiness check. */
const CHECK_TIMEOUT_MS = 3_000

const loopback = new BlockList()
loopback.addSubnet('127.0.0.0', 8, 'ipv4')
loopback.addAddress('::1', 'ipv6')

/** Headers that show a request came through a proxy. */
const proxyHeaders = ['forwarded', 'via', 'x-forwarded-for', 'x-forwarded-host', 'x-real-ip']

/** Readiness path for load balancers. Served for any Host, like `/healthz`: it reveals nothing sensitive. */
export const READINESS = '/readyz'

/**
 * Adds `/healthz` and `/metrics`. They run before authentication, so they work while the database is down.
 * @param requireOwnHost throws when the Host header is not one of this gateway's.
 */
export function routeHealth(
  app: Hono<Env>,
  services: Services,
  requireOwnHost: (c: HttpContext) => void,
): void {
  const { metrics, settings, clock } = services
  const gauges = atMostEvery(GAUGE_CACHE_MS, clock, () => readGauges(services))
  app.get('/healthz', (c) => {
    refuseQueryCredentials(readRawTarget(c))
    return c.json({ status: 'ok' })
  })
  app.get('/metrics', async (c) => {
    refuseQueryCredentials(readRawTarget(c))
    // A scraper on this machine connects by address, whatever name clients use.
    if (settings.metricsToken === null && !isByLoopbackName(c)) requireOwnHost(c)
    requireMetricsAccess(c, settings)
    const { contentType, text } = await metrics.expose(await gauges())
    return c.body(text, 200, { 'Content-Type': contentType })
  })
}

/**
 * Requires METRICS_TOKEN if it is set. Without it, the sandbox serves metrics to all clients and production only to
 * loopback connections. @throws Failure `unauthenticated`, `not_found`.
 */
function requireMetricsAccess(
  c: HttpContext,
  { metricsToken, mode }: Pick<Services['settings'], 'metricsToken' | 'mode'>,
): void {
  if (metricsToken !== null) {
    const given = Buffer.from(c.req.header('authorization') ?? '')
    const needed = Buffer.from(`Bearer ${metricsToken}`)
    if (given.length === needed.length && timingSafeEqual(given, needed)) return
    throw new Failure('unauthenticated', 'The metrics require METRICS_TOKEN.', {
      hint: 'Send METRICS_TOKEN as "Authorization: Bearer …".',
    })
  }
  if (mode === 'sandbox' || isFromLoopback(c)) return
  throw new Failure('not_found', 'The metrics are available on this machine only.', {
    hint: 'Set METRICS_TOKEN, and send it as "Authorization: Bearer …".',
  })
}

/** True for a direct connection of this machine to a loopback name, which no page of another site can have. */
function isByLoopbackName(c: HttpContext): boolean {
  const { incoming } = c.env ?? {}
  if (incoming === undefined || !isFromLoopback(c)) return false
  return isLoopbackHost(incoming.headers.host ?? '', incoming.socket.localPort ?? 0)
}

function isFromLoopback(c: HttpContext): boolean {
  const peer = (c.env.incoming?.socket.remoteAddress ?? '').replace(/^::ffff:/, '')
  if (proxyHeaders.some((name) => c.req.header(name) !== undefined)) return false
  return isIP(peer) !== 0 && loopback.check(peer, isIP(peer) === 6 ? 'ipv6' : 'ipv4')
}

/** Adds `/readyz`, which answers 503 while a required dependency is unavailable or the process is draining. */
export function routeReadiness(
  app: Hono<Env>,
  { database, chains, rateLimiter, railControls, clock, log }: Services,
  isDraining: () => boolean,
): void {
  const checks: Readonly<Record<string, () => Promise<unknown>>> = {
    database: async () => {
      const pending = await database.pendingMigrations()
      if (pending.length > 0) throw new Error(`${pending.length} migrations or functions are missing`)
    },
    // A deployment works with the chains that answer.
    chain: () => Promise.any(chains.all.map(({ name }) => blockNumber(name))),
    rateLimits: () => rateLimiter.take('readyz', { count: 1, seconds: 1 }, clock()),
  }
  /** Reported, but not required: routes that need them answer 503 themselves. */
  const optionalChecks = {
    railControls: atMostEvery(PROVIDER_CHECK_MS, clock, () => railControls.read('wallet-transfer')),
  }
  const nodes = new Map<string, () => Promise<bigint>>()
  const blockNumber = (name: Chain['name']): Promise<bigint> => {
    const ask =
      nodes.get(name) ?? atMostEvery(PROVIDER_CHECK_MS, clock, async () => chains.of(name).blockNumber())
    nodes.set(name, ask)
    return ask()
  }
  /** Each of several chains. */
  const chainChecks = () =>
    chains.all.length + chains.absent.length === 1
      ? []
      : [...chains.all.map(({ name }) => name), ...chains.absent].map(
          (name) => [`chain_${name}`, () => blockNumber(name)] as const,
        )
  app.get(READINESS, async (c) => {
    if (isDraining()) return c.json({ status: 'draining', checks: {} }, 503)
    const results = await Promise.all(
      [...Object.entries({ ...checks, ...optionalChecks }), ...chainChecks()].map(
        async ([name, check]) => [name, await runCheck(name, check, log)] as const,
      ),
    )
    const isReady = results.every(([name, result]) => result === 'ok' || !(name in checks))
    return c.json(
      { status: isReady ? 'ok' : 'unavailable', checks: Object.fromEntries(results) },
      isReady ? 200 : 503,
    )
  })
}

async function runCheck(part: string, check: () => Promise<unknown>, log: Services['log']): Promise<string> {
  let cancel: Cancel | undefined
  const late = new Promise<never>((_resolve, reject) => {
    cancel = timers.after(CHECK_TIMEOUT_MS, () => reject(new Error(`no answer in ${CHECK_TIMEOUT_MS} ms`)))
  })
  try {
    await Promise.race([check(), late])
    return 'ok'
  } catch (err) {
    log.warn({ err, part }, 'not ready')
    return 'unavailable'
  } finally {
    cancel?.()
  }
}
