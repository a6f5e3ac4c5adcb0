/**
 * The REST transport: every tool as a route, and the way in that all paths share. Knows HTTP and the kernel; never which
 * tools there are. In order: request id, no credential in the query, limits, body, caller; then the tool.
 */
import { Hono, type Context as HonoContext } from 'hono'
import { Failure } from '../failure.ts'
import type { CatalogueEntry } from '../kernel/catalogue.ts'
import type { Services } from '../kernel/context.ts'
import { countRequest, requireWithinLimit } from '../kernel/gates/rate.ts'
import type { Principal } from '../principal.ts'
import { authenticate, sessionCookie } from './authenticate.ts'
import { clientAddressOf, trustedProxyList } from './client-address.ts'
import { openApiDocument } from './openapi.ts'
import { problemResponse } from './problem.ts'
import { refuseQueryCredentials } from './query-credentials.ts'
import { type Env, type HttpContext, mutatingMethods, rawTargetOf, readBody } from './request.ts'
import { routeTool, type Seller } from './route.ts'

/** A request that another transport answers, after the way in. */
export interface MountedRequest {
  readonly request: Request
  readonly body: Uint8Array
  readonly principal: Principal
  readonly requestId: string
  readonly now: Date
}

/** What the app is joined from. */
export interface AppParts {
  readonly catalogue: readonly CatalogueEntry[]
  readonly services: Services
  /** Sells tools by x402. */
  readonly seller: Seller
  /** Other transports by path, such as `/mcp`; they take POST. */
  readonly mounts: ReadonlyMap<string, (mounted: MountedRequest) => Promise<Response>>
}

/** The gateway's HTTP application. */
export function createApp({ catalogue, services, seller, mounts }: AppParts): Hono<Env> {
  const app = new Hono<Env>()
  const trusted = trustedProxyList(services.settings.trustedProxies)
  app.use(async (c, next) => {
    const given = c.req.header('x-request-id') ?? ''
    c.set('now', services.clock())
    c.set('requestId', /^[A-Za-z0-9._-]{1,128}$/.test(given) ? given : services.newId('req', c.get('now')))
    await next()
    finish(c)
  })
  app.use(async (c, next) => {
    refuseQueryCredentials(rawTargetOf(c))
    const peer = c.env.incoming?.socket.remoteAddress ?? '127.0.0.1'
    c.set('clientAddress', clientAddressOf(peer, c.req.header('x-forwarded-for'), trusted))
    if (mutatingMethods.has(c.req.method)) await limit(services, c, 'mutations', true)
    c.set('body', await readBody(c))
    const { principal, renewed } = await authenticate(services, c)
    c.set('principal', principal)
    if (renewed !== null)
      c.header('Set-Cookie', sessionCookie(services.settings.origin, renewed, c.get('now')))
    await next()
  })
  health(app, services)
  const document = JSON.stringify(openApiDocument(catalogue, services.settings))
  app.get('/api/openapi.json', (c) => c.body(document, 200, { 'Content-Type': 'application/json' }))
  for (const entry of catalogue) routeTool(app, entry, { services, seller, limit })
  for (const [path, handle] of mounts) {
    app.post(path, (c) =>
      handle({
        request: c.req.raw,
        body: c.get('body'),
        principal: c.get('principal'),
        requestId: c.get('requestId'),
        now: c.get('now'),
      }),
    )
  }
  refuseOtherMethods(app)
  app.notFound((c) => {
    throw new Failure('not_found', `There is nothing at ${new URL(c.req.url).pathname.slice(0, 200)}.`, {
      hint: 'GET /api/openapi.json lists every route.',
    })
  })
  app.onError((error, c) => {
    const response = problemResponse(error, {
      requestId: c.get('requestId'),
      instance: new URL(c.req.url).pathname.slice(0, 200),
      log: services.log,
    })
    for (const [name, value] of c.res.headers)
      if (name.startsWith('ratelimit')) response.headers.set(name, value)
    return response
  })
  return app
}

/** Headers that every answer carries. */
function finish(c: HonoContext<Env>): void {
  const { headers } = c.res
  headers.set('X-Request-Id', c.get('requestId'))
  headers.set('X-Content-Type-Options', 'nosniff')
  if (c.req.path === '/api/openapi.json') headers.set('Cache-Control', 'public, max-age=300')
  else if (!headers.has('Cache-Control')) headers.set('Cache-Control', 'no-store')
}

async function limit(
  services: Services,
  c: HttpContext,
  rateClass: string,
  failClosed: boolean,
): Promise<void> {
  const reading = await countRequest(services, {
    rateClass,
    client: c.get('clientAddress'),
    now: c.get('now'),
    failClosed,
  })
  if (reading === null) return
  c.header('RateLimit-Policy', `"${reading.rateClass}";q=${reading.count};w=${reading.seconds}`)
  c.header('RateLimit', `"${reading.rateClass}";r=${reading.remaining};t=${reading.resetSeconds}`)
  requireWithinLimit(reading)
}

/** Liveness and readiness. */
function health(app: Hono<Env>, { database, chain, log }: Services): void {
  app.get('/healthz', (c) => c.json({ status: 'ok' }))
  app.get('/readyz', async (c) => {
    const checks = {
      database: async () =>
        void (await database.kysely.selectFrom('account').select('id').limit(1).execute()),
      chain: async () => void (await chain.blockNumber()),
    }
    const results = await Promise.all(
      Object.entries(checks).map(
        async ([name, check]) =>
          [
            name,
            await check().then(
              () => 'ok',
              (err) => failed(log, name, err),
            ),
          ] as const,
      ),
    )
    const isReady = results.every(([, result]) => result === 'ok')
    return c.json(
      { status: isReady ? 'ok' : 'unavailable', checks: Object.fromEntries(results) },
      isReady ? 200 : 503,
    )
  })
}

function failed(log: Services['log'], part: string, err: unknown): string {
  log.warn({ err, part }, 'not ready')
  return 'unavailable'
}

/** A known path with another method is 405 and says which methods it has. */
function refuseOtherMethods(app: Hono<Env>): void {
  const methods = new Map<string, Set<string>>()
  for (const { path, method } of app.routes) {
    if (method === 'ALL') continue
    methods.set(path, (methods.get(path) ?? new Set()).add(method))
  }
  for (const [path, known] of methods) {
    const allow = [...known].sort().join(', ')
    app.all(path, (c) => {
      c.header('Allow', allow)
      throw new Failure('method_not_allowed', `${c.req.method} is not possible here; ${allow} is.`)
    })
  }
}
