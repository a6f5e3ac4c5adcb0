/** What whoever runs the gateway asks it: is it alive, can it serve, and how is it. */
import { timingSafeEqual } from 'node:crypto'
import { BlockList, isIP } from 'node:net'
import type { Hono } from 'hono'
import { Failure } from '../failures/failure.ts'
import { readGauges } from '../health/read-gauges.ts'
import type { Services } from '../kernel/context.ts'
import type { Gauge } from '../providers/metrics.ts'
import { refuseQueryCredentials } from './query-credentials.ts'
import { type Env, type HttpContext, rawTargetOf } from './request.ts'

/** How long gauges that were read are told again: scrapers come in numbers, and the database has other work. */
const FRESH_MS = 5_000

/** How long a part may take to say that it is there. */
const PATIENCE_MS = 3_000

const loopback = new BlockList()
loopback.addSubnet('127.0.0.0', 8, 'ipv4')
loopback.addAddress('::1', 'ipv6')

/** Headers by which a proxy says that somebody else is behind a connection. */
const proxied = ['forwarded', 'via', 'x-forwarded-for', 'x-forwarded-host', 'x-real-ip']

/** Where balancers ask whether a process can serve. They name it as they like: it and `/healthz` tell nothing of worth. */
export const READINESS = '/readyz'

/**
 * Adds `/healthz` and `/metrics`, which answer whatever else is down: before the way in that asks the database who calls.
 * @param requireOwnHost throws where the request's Host is not ours.
 */
export function routeHealth(
  app: Hono<Env>,
  services: Services,
  requireOwnHost: (c: HttpContext) => void,
): void {
  const { metrics, settings, clock } = services
  let gauges: Promise<readonly Gauge[]> = Promise.resolve([])
  let readAt = Number.NEGATIVE_INFINITY
  app.get('/healthz', (c) => {
    refuseQueryCredentials(rawTargetOf(c))
    return c.json({ status: 'ok' })
  })
  app.get('/metrics', async (c) => {
    refuseQueryCredentials(rawTargetOf(c))
    if (settings.metricsToken === null) requireOwnHost(c)
    requireWatcher(c, settings)
    const now = clock().getTime()
    if (now - readAt >= FRESH_MS) {
      readAt = now
      gauges = readGauges(services)
    }
    const { contentType, text } = await metrics.expose(await gauges)
    return c.body(text, 200, { 'Content-Type': contentType })
  })
}

/**
 * Who may watch: whoever has the token; without one anybody in the sandbox, and in production only this machine itself.
 * @throws Failure `unauthenticated`, `not_found`.
 */
function requireWatcher(
  c: HttpContext,
  { metricsToken, mode }: Pick<Services['settings'], 'metricsToken' | 'mode'>,
): void {
  if (metricsToken !== null) {
    const given = Buffer.from(c.req.header('authorization') ?? '')
    const needed = Buffer.from(`Bearer ${metricsToken}`)
    if (given.length === needed.length && timingSafeEqual(given, needed)) return
    throw new Failure('unauthenticated', 'The metrics are for those who have their token.', {
      hint: 'Send METRICS_TOKEN as "Authorization: Bearer …".',
    })
  }
  if (mode === 'sandbox' || isFromHere(c)) return
  throw new Failure('not_found', 'The metrics are not open to other machines.', {
    hint: 'Set METRICS_TOKEN, and send it as "Authorization: Bearer …".',
  })
}

function isFromHere(c: HttpContext): boolean {
  const peer = (c.env.incoming?.socket.remoteAddress ?? '').replace(/^::ffff:/, '')
  if (proxied.some((name) => c.req.header(name) !== undefined)) return false
  return isIP(peer) !== 0 && loopback.check(peer, isIP(peer) === 6 ? 'ipv6' : 'ipv4')
}

/** Adds `/readyz`: 503 while this process cannot do its work, or is about to end. @param isDraining whether it was told to. */
export function routeReadiness(
  app: Hono<Env>,
  { database, chain, rateLimiter, railControls, clock, log }: Services,
  isDraining: () => boolean,
): void {
  const checks = {
    database: async () => {
      const pending = await database.pendingMigrations()
      if (pending.length > 0) throw new Error(`${pending.length} migrations or functions are missing`)
    },
    chain: () => chain.blockNumber(),
    rateLimits: () => rateLimiter.take('readyz', { count: 1, seconds: 1 }, clock()),
  }
  /** Told as they are, but without them the gateway still serves: it is itself who says 503 where they are needed. */
  const others = { railControls: () => railControls.read('wallet-transfer') }
  app.get(READINESS, async (c) => {
    if (isDraining()) return c.json({ status: 'draining', checks: {} }, 503)
    const results = await Promise.all(
      Object.entries({ ...checks, ...others }).map(
        async ([name, check]) => [name, await verdictOf(name, check, log)] as const,
      ),
    )
    const isReady = results.every(([name, result]) => result === 'ok' || name in others)
    return c.json(
      { status: isReady ? 'ok' : 'unavailable', checks: Object.fromEntries(results) },
      isReady ? 200 : 503,
    )
  })
}

/** Whether a part answered in time. */
async function verdictOf(part: string, check: () => Promise<unknown>, log: Services['log']): Promise<string> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new Error(`no answer in ${PATIENCE_MS} ms`)), PATIENCE_MS)
  })
  try {
    await Promise.race([check(), late])
    return 'ok'
  } catch (err) {
    log.warn({ err, part }, 'not ready')
    return 'unavailable'
  } finally {
    clearTimeout(timer)
  }
}
