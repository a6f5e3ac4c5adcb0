/**
 * The REST transport: serves every tool as a route behind one shared pipeline: request id, query-credential check,
 * rate limits, body, authentication, then the tool. Imports HTTP and the kernel; receives the tools as an argument.
 */

import { Hono, type Context as HonoContext } from 'hono'
import { matchedRoutes, routePath } from 'hono/route'
import { lazy } from '../../core/base/lazy.ts'
import { matchOriginName } from '../../core/base/origins.ts'
import { timers } from '../../core/base/timers.ts'
import { nextTurn } from '../../core/base/turn.ts'
import { Failure } from '../../core/failures/failure.ts'
import type { AuthenticatedRequest } from '../../kernel/authenticated-request.ts'
import type { CatalogueEntry } from '../../kernel/catalogue.ts'
import type { Services } from '../../kernel/context.ts'
import type { RequestSeller } from '../../rails/selling/x402/request-sale.ts'
import type { ListedSeller } from '../../rails/selling/x402/sale.ts'
import { authenticate, requireCaller } from './authenticate.ts'
import {
  AUTHORIZATION_METADATA,
  createAuthorizationServer,
} from './authorization-server/authorization-server.ts'
import { findClientAddress, trustedProxyList } from './client-address.ts'
import { sendPublic } from './compressed.ts'
import { READINESS, routeHealth, routeReadiness } from './health.ts'
import { limitAddress, limitCaller, limitStop, refundCounted } from './limits.ts'
import { createLongBodies, mayBeLong } from './long-bodies.ts'
import { nearestRoute } from './nearest-route.ts'
import { openApiDocument } from './openapi/document.ts'
import { ownHostCheck } from './own-host.ts'
import { createSite, refuseUnknownPages, routeDocs } from './pages/docs/routes.tsx'
import { routePayPages } from './pages/pay-routes.tsx'
import { notFoundPage, routePages, wantsPage } from './pages/routes.tsx'
import { MAX_BODY_BYTES, problemResponse } from './problem.ts'
import { loggablePath, refuseQueryCredentials, withoutCredentials } from './query-credentials.ts'
import {
  type Env,
  type HttpContext,
  mutatingMethods,
  readBody,
  readRawTarget,
  requirePlainRequest,
} from './request.ts'
import { routeTool, toolRoute } from './route.ts'
import { routeSandboxSellers } from './sandbox-sellers/routes.ts'
import { setSecurityHeaders } from './security-headers.ts'
import { listPaths } from './tool-paths.ts'
import { isUnsignedWebhook, routeWebhooks, WEBHOOKS } from './webhooks/routes.ts'
import { RESOURCE_METADATA, routeWellKnown } from './well-known.ts'
import { isPaid } from './x402.ts'

export interface AppParts {
  readonly catalogue: readonly CatalogueEntry[]
  readonly services: Services
  readonly seller: ListedSeller
  readonly requestSeller: RequestSeller
  /** Other transports by path, such as `/mcp`. They receive GET, POST and DELETE. */
  readonly mounts: ReadonlyMap<string, (mounted: AuthenticatedRequest) => Promise<Response>>
  /** Called for every request that may leave work for the jobs: writes and payments. */
  readonly onWrite?: () => void
  /** Aborts when the process begins to shut down: streams end with it. */
  readonly ending?: AbortSignal
  /** True while the process shuts down; `/readyz` then answers 503. */
  readonly isDraining?: () => boolean
  /** True to log requests that succeed at the level `debug`, under a banner that a person reads. */
  readonly isQuiet?: boolean
  /** Handlers for all routes below a path, such as the sandbox's identity provider. */
  readonly below?: ReadonlyMap<string, (c: HttpContext) => Promise<Response>>
}

export function createApp(parts: AppParts): Hono<Env> {
  const {
    catalogue,
    services,
    seller,
    requestSeller,
    mounts,
    below = new Map(),
    isDraining = () => false,
    onWrite = () => {},
    ending = new AbortController().signal,
    isQuiet = false,
  } = parts
  const app = new Hono<Env>()
  const stopRoutes = new Set(
    catalogue.flatMap(({ tool }) =>
      tool.stops === true ? listPaths(tool, services).map(({ at }) => toolRoute(tool, at).join(' ')) : [],
    ),
  )
  const isStopRoute = (c: HttpContext) =>
    matchedRoutes(c).some(({ method, path }) => stopRoutes.has(`${method} ${path}`))
  const bodyLimits = new Map(
    catalogue.flatMap(({ tool }) =>
      tool.maxBodyBytes === undefined
        ? []
        : listPaths(tool, services).map(
            ({ at }) => [toolRoute(tool, at).join(' '), tool.maxBodyBytes] as const,
          ),
    ),
  )
  const findBodyLimit = (c: HttpContext) =>
    matchedRoutes(c)
      .map(({ method, path }) => bodyLimits.get(`${method} ${path}`))
      .find((limit) => limit !== undefined) ?? MAX_BODY_BYTES
  const longBodies = createLongBodies()
  const trusted = trustedProxyList(services.settings.trustedProxies)
  app.use((c, next) => instrumentRequest({ services, isQuiet }, c, next))
  const requireOwnHost = ownHostCheck(services.settings)
  routeHealth(app, services, requireOwnHost)
  if (services.settings.mode === 'sandbox') routeSandboxSellers(app, services, requireOwnHost)
  const answer = async (
    c: HttpContext,
    { isLimited, isStop, isWebhook }: { isLimited: boolean; isStop: boolean; isWebhook: boolean },
    next: () => Promise<void>,
  ) => {
    if (c.req.path !== READINESS) requireOwnHost(c)
    // A slow body delays the request, so all time checks use the moment when it has arrived completely.
    c.set('now', services.clock())
    // Webhooks are authenticated by the provider's signature alone; other credentials are ignored.
    if (!isWebhook) c.set('caller', await authenticate(services, c))
    if (isLimited && !isWebhook) await (isStop ? limitStop : limitCaller)(services, c)
    await next()
  }
  app.use(async (c, next) => {
    await nextTurn()
    refuseQueryCredentials(readRawTarget(c))
    requirePlainRequest(c)
    const peer = c.env.incoming?.socket.remoteAddress ?? '127.0.0.1'
    c.set('clientAddress', findClientAddress(peer, c.req.header('x-forwarded-for'), trusted))
    const isWebhook = c.req.path.startsWith(WEBHOOKS)
    const isLimited = mutatingMethods.has(c.req.method) && (!isWebhook || isUnsignedWebhook(c))
    // Counted once its caller is known, because an address is shared with strangers.
    const isStop = isLimited && isStopRoute(c)
    if (isLimited && !isStop)
      await limitAddress(services, c, 'mutations', { failClosed: true, isMetered: false })
    if (mutatingMethods.has(c.req.method) || isPaid(c)) onWrite()
    const maxBytes = findBodyLimit(c)
    const release = maxBytes > MAX_BODY_BYTES && mayBeLong(c) ? longBodies.take() : () => {}
    try {
      c.set('body', await readBody(c, maxBytes))
      await answer(c, { isLimited, isStop, isWebhook }, next)
    } finally {
      release()
    }
  })
  routeReadiness(app, services, isDraining)
  routeWellKnown(app, services, seller)
  const described = lazy(() => openApiDocument(catalogue, services))
  const document = lazy(() => JSON.stringify(described()))
  app.get('/api/openapi.json', (c) =>
    sendPublic(c, {
      name: '/api/openapi.json',
      text: document(),
      headers: { 'Content-Type': 'application/json' },
    }),
  )
  const site = createSite({ document: described, catalogue, services })
  refuseUnknownPages(app, site)
  for (const entry of catalogue) routeTool(app, entry, { services, seller, ending })
  routeWebhooks(app, services)
  routePages(app, services)
  routePayPages(app, services, requestSeller)
  routeDocs(app, site)
  for (const [path, handle] of mounts) {
    app.on(['GET', 'POST', 'DELETE'], path, (c) =>
      handle({
        request: c.req.raw,
        body: c.get('body'),
        principal: requireCaller(c),
        requestId: c.get('requestId'),
        now: c.get('now'),
        clientAddress: c.get('clientAddress'),
        refundCounts: () => refundCounted(services, c),
      }),
    )
  }
  for (const [path, answer] of below) app.all(`${path}/*`, answer)
  const authorizationServer = createAuthorizationServer(services)
  app.all('/oauth/*', authorizationServer)
  app.get(AUTHORIZATION_METADATA, authorizationServer)
  const paths = new Set(app.routes.map(({ path }) => path).filter((path) => path.startsWith('/api/')))
  refuseOtherMethods(app)
  app.notFound((c) => {
    if (wantsPage(c)) return notFoundPage(c)
    const path = withoutCredentials(new URL(c.req.url).pathname).slice(0, 200)
    const nearest = nearestRoute(path, paths)
    throw new Failure('not_found', `No route matches ${path}.`, {
      hint: `${nearest === null ? '' : `Did you mean ${nearest}? `}GET /api/openapi.json lists every route.`,
    })
  })
  app.onError(async (error, c) => {
    if (error instanceof Failure && error.code === 'rate_limited') await refundCounted(services, c)
    if (error instanceof Failure && error.members.decisionId !== undefined)
      c.set('decisionId', error.members.decisionId)
    const instance = withoutCredentials(new URL(c.req.url).pathname).slice(0, 200)
    const resourceMetadata =
      c.req.path === '/mcp'
        ? `${matchOriginName(services.settings.origin, c.req.header('host'))}${RESOURCE_METADATA}`
        : undefined
    return problemResponse(error, {
      requestId: c.get('requestId'),
      instance,
      resourceMetadata,
      log: services.log,
    })
  })
  return app
}

/** Adds the request id, trace, shared response headers, log line and metrics to every request. */
async function instrumentRequest(
  { services, isQuiet }: { readonly services: Services; readonly isQuiet: boolean },
  c: HttpContext,
  next: () => Promise<void>,
): Promise<void> {
  const { clock, newId, log, metrics, tracing, settings } = services
  const startedAt = timers.monotonic()
  const given = c.req.header('x-request-id') ?? ''
  c.set('now', clock())
  const isFine = /^[A-Za-z0-9._-]{1,128}$/.test(given) && withoutCredentials(given) === given
  c.set('requestId', isFine ? given : newId('req', c.get('now')))
  const { method } = c.req
  const facts = {
    requestId: c.get('requestId'),
    method,
    path: loggablePath(c.req.path),
  }
  const request = {
    method,
    requestId: facts.requestId,
    scheme: settings.origin.startsWith('https:') ? 'https' : 'http',
    traceparent: c.req.header('traceparent'),
    tracestate: c.req.header('tracestate'),
  }
  const work = async () => {
    await next()
    finish(c, settings.origin)
    const ms = timers.monotonic() - startedAt
    const status = readStatus(c)
    metrics.request({ method, route: findRoute(c) ?? 'none', status, seconds: ms / 1_000 })
    const [traceId, decisionId] = [tracing.traceId(), c.get('decisionId')]
    const about = { ...(decisionId ? { decisionId } : {}), ...(traceId === null ? {} : { traceId }) }
    log[isQuiet && status < 500 ? 'debug' : 'info'](
      { ...facts, status, ...about, ms: Math.round(ms) },
      'request',
    )
  }
  await tracing.request(request, work, () => ({ route: findRoute(c), status: readStatus(c) }))
}

/** Reads the status from Node's response when a handler wrote to it directly; Hono's response is empty then. */
function readStatus(c: HttpContext): number {
  return c.env?.outgoing?.headersSent === true ? c.env.outgoing.statusCode : c.res.status
}

/** The declared route pattern, or null for unmatched paths: a raw path would create unbounded metric labels. */
function findRoute(c: HttpContext): string | null {
  const own = routePath(c)
  if (own !== '/*') return own
  return matchedRoutes(c).find(({ path }) => path !== '/*')?.path ?? null
}

/** Sets the headers that every response carries. */
function finish(c: HonoContext<Env>, origin: string): void {
  const set = headerSetter(c)
  setSecurityHeaders(c, set, { origin, isBefore: false })
  const allow = c.get('allow')
  if (allow !== undefined) set('Allow', allow)
  const reading = c.get('reading')
  if (reading !== undefined) {
    const { rateClass, count, seconds, remaining, resetSeconds } = reading
    set('RateLimit-Policy', `"${rateClass}";q=${count};w=${seconds}`)
    set('RateLimit', `"${rateClass}";r=${remaining};t=${resetSeconds}`)
  }
  set('X-Request-Id', c.get('requestId'))
  set('Cache-Control', c.req.path === '/api/openapi.json' ? 'public, max-age=300' : 'no-store')
}

/**
 * Sets a header unless the response already has it. On a server it is set on Node's response, because reading the
 * headers of a web Response makes node-server build a full one.
 */
function headerSetter(c: HonoContext<Env>): (name: string, value: string) => void {
  const outgoing = c.env?.outgoing
  if (outgoing?.headersSent === true) return () => {}
  if (outgoing !== undefined) return (name, value) => void outgoing.setHeader(name, value)
  return (name, value) => {
    if (!c.res.headers.has(name)) c.res.headers.set(name, value)
  }
}

/** Answers 405 with an Allow header when the path exists but not for this method. */
function refuseOtherMethods(app: Hono<Env>): void {
  const methods = new Map<string, Set<string>>()
  for (const { path, method } of app.routes) {
    if (method === 'ALL') continue
    methods.set(path, (methods.get(path) ?? new Set()).add(method))
  }
  for (const [path, known] of methods) {
    const allow = [...known].sort().join(', ')
    app.all(path, (c) => {
      c.set('allow', allow)
      throw new Failure('method_not_allowed', `${c.req.method} is not allowed here; use ${allow}.`, {
        hint: `Send ${allow.replaceAll(', ', ' or ')} to this path. GET /api/openapi.json says what each does.`,
      })
    })
  }
}
