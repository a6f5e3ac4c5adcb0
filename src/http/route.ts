/** Serves a tool as a REST route. */
import type { Hono } from 'hono'
import { isStorable } from '../base/json.ts'
import type { Principal } from '../base/principal.ts'
import { Failure } from '../failures/failure.ts'
import type { CatalogueEntry } from '../kernel/catalogue.ts'
import type { Services } from '../kernel/context.ts'
import { requireRail } from '../kernel/gates/rail.ts'
import { run } from '../kernel/run.ts'
import type { Tool } from '../kernel/tool.ts'
import type { Seller } from '../x402/sale.ts'
import { callerOf, requireSameSitePage, sessionCookie } from './authenticate.ts'
import { csvAnswer } from './csv.ts'
import { openEventStream, wantsStream, withLastEventId } from './event-stream.ts'
import { type Env, type HttpContext, jsonBodyOf, mutatingMethods } from './request.ts'
import { pathsOf, type ToolPath } from './tool-paths.ts'
import { isPaid, PAYMENT_HEADERS, saleResponse, sentPaymentOf } from './x402.ts'

/**
 * Options of a rate limit. @property isMetered the request carries a payment: it is counted separately and refunded
 * once it has paid, so only payments that fail use up the limit.
 */
export interface RateLimitDependencies {
  readonly failClosed: boolean
  readonly isMetered: boolean
}

interface RouteParts {
  readonly services: Services
  /** Aborts when the process begins to end: streams end with it. */
  readonly ending: AbortSignal
  readonly seller: Seller
  readonly limit: (
    services: Services,
    c: HttpContext,
    rateClass: string,
    options: RateLimitDependencies,
  ) => Promise<void>
  /** Refunds the count of a metered request. */
  readonly unlimit: (services: Services, c: HttpContext, rateClass: string) => Promise<void>
}

/** Adds a tool at each of its paths. */
export function routeTool(app: Hono<Env>, entry: CatalogueEntry, parts: RouteParts): void {
  for (const path of pathsOf(entry.tool, parts.services)) routePath(app, entry, path, parts)
}

function routePath(
  app: Hono<Env>,
  entry: CatalogueEntry,
  { at, fixed }: ToolPath,
  { services, seller, limit, unlimit, ending }: RouteParts,
): void {
  const { tool } = entry
  const [method = ''] = tool.route.split(' ')
  app.on(method, at.replaceAll(/\{(\w+)\}/g, ':$1'), async (c) => {
    // Serving a challenge is a public read; accepting a payment is not.
    const isMetered = tool.isSold && isPaid(c)
    const failClosed = tool.isSold ? isMetered : tool.effect !== 'read'
    const { rate } = tool
    if (rate !== undefined) await limit(services, c, rate, { failClosed, isMetered })
    if (rate !== undefined && isMetered)
      return sellMetered(tool, c, { services, seller, unlimit: () => unlimit(services, c, rate) })
    if (tool.isSold) return sell(tool, c, { services, seller })
    if (tool.opensSession === true || tool.closesSession === true)
      requireSameSitePage(c, services.settings.origin)
    const principal = tool.who === 'public' ? c.get('caller').principal : callerOf(c)
    const isStream = wantsStream(c, tool)
    const raw = isStream ? withLastEventId(c, rawInputOf(c, fixed)) : rawInputOf(c, fixed)
    const { body, replayed, decisionId } = await run(tool, callFacts(services, c, principal), raw)
    const isHead = c.req.method === 'HEAD'
    if (isStream) return openEventStream(services, { principal, tool, raw, ending, isHead })
    if (decisionId !== null) c.set('decisionId', decisionId)
    if (tool.closesSession === true)
      c.header('Set-Cookie', sessionCookie(services.settings.origin, null, c.get('now')))
    else renewCookie(services, c)
    if (replayed) c.header('Idempotency-Replayed', 'true')
    if (tool.opensSession === true) setSessionCookie(services, c, body)
    return csvAnswer(c, entry, body) ?? c.json(body)
  })
}

/** Keeps the rate-limit count only when the payment itself is at fault. */
async function sellMetered(
  tool: Tool,
  c: HttpContext,
  { unlimit, ...parts }: Pick<RouteParts, 'services' | 'seller'> & { unlimit: () => Promise<void> },
): Promise<Response> {
  try {
    const response = await sell(tool, c, parts)
    if (response.ok) await unlimit()
    return response
  } catch (error) {
    if (!(error instanceof Failure) || error.status >= 500) await unlimit()
    throw error
  }
}

/**
 * Decodes the input and checks the rail before any challenge, so that no client pays for a response that cannot be
 * delivered.
 */
async function sell(
  tool: Tool,
  c: HttpContext,
  { services, seller }: Pick<RouteParts, 'services' | 'seller'>,
): Promise<Response> {
  if (c.req.method === 'HEAD') {
    c.set('allow', 'GET')
    throw new Failure('method_not_allowed', 'HEAD is not supported for paid resources; use GET.')
  }
  const call = tool.decode(rawInputOf(c))
  if (call.sell === null) throw new Error(`${tool.name} is not for sale`)
  await requireRail(tool, services)
  const { principal } = c.get('caller')
  const { sell: make, input } = call
  const deliver = () => make({ ...callFacts(services, c, principal), afterCommit: () => {} })
  const payment = sentPaymentOf(c)
  const route = `${c.req.method} ${c.req.path}`
  return saleResponse(await seller.sell({ route, input, payment, paymentPlace: PAYMENT_HEADERS, deliver }))
}

/** Members written out before the one spread: beside another spread, or after this one, each takes as long as all others. */
function callFacts(services: Services, c: HttpContext, principal: Principal) {
  return {
    principal,
    requestId: c.get('requestId'),
    clientAddress: c.get('clientAddress'),
    now: c.get('now'),
    idempotencyKey: idempotencyKeyOf(c),
    refusal: c.get('caller').refusal,
    ...services,
  }
}

function idempotencyKeyOf(c: HttpContext): string | null {
  const key = c.req.header('idempotency-key')
  if (key === undefined || !mutatingMethods.has(c.req.method)) return null
  if (!/^[\x21-\x7e]{1,255}$/.test(key))
    throw new Failure('invalid_request', 'The Idempotency-Key must be 1 to 255 visible ASCII characters.', {
      issues: [{ path: 'Idempotency-Key', message: 'must be 1 to 255 visible ASCII characters' }],
    })
  return key
}

/**
 * Merges query, path and body into one raw input. A repeated query parameter stays a list, which every schema
 * rejects.
 */
function rawInputOf(c: HttpContext, fixed: ToolPath['fixed'] = {}): unknown {
  const parameters = { ...c.req.param(), ...fixed }
  for (const [name, value] of Object.entries(parameters)) requireText(name, value)
  if (mutatingMethods.has(c.req.method)) {
    const body = jsonBodyOf(c)
    for (const name of Object.keys(parameters)) requireAbsent(body, name)
    return typeof body === 'object' && body !== null && !Array.isArray(body)
      ? { ...body, ...parameters }
      : body
  }
  const queries = Object.entries(c.req.queries()).map(([name, values]) => {
    for (const text of [name, ...values]) requireText('query', text)
    return [name, values.length === 1 ? values[0] : values]
  })
  return { ...Object.fromEntries(queries), ...parameters }
}

/** Rejects path parameters that are repeated in the body. @throws Failure `invalid_request`. */
function requireAbsent(body: unknown, name: string): void {
  if (typeof body !== 'object' || body === null || !Object.hasOwn(body, name)) return
  const message = 'is already set by the path'
  throw new Failure('invalid_request', `${name}: ${message}`, { issues: [{ path: name, message }] })
}

/** Applies the text rules of JSON bodies to paths and queries. @throws Failure `invalid_request`. */
function requireText(name: string, value: string): void {
  if (isStorable(value)) return
  const message = 'contains U+0000 or an unpaired surrogate'
  throw new Failure('invalid_request', `${name}: ${message}`, { issues: [{ path: name, message }] })
}

/** Renews the session cookie before it expires. */
function renewCookie(services: Services, c: HttpContext): void {
  const { renewed } = c.get('caller')
  if (renewed !== null) c.header('Set-Cookie', sessionCookie(services.settings.origin, renewed, c.get('now')))
}

/**
 * Sets the session cookie when the response has a session token. Intermediate sign-in steps, and requests that keep
 * their cookie session, return none.
 */
function setSessionCookie(services: Services, c: HttpContext, body: Record<string, unknown>): void {
  const { sessionToken, expiresAt } = body
  if (sessionToken === undefined || sessionToken === null) return
  if (typeof sessionToken !== 'string' || typeof expiresAt !== 'string')
    throw new Error('a session has a token and an expiry')
  const session = { sessionToken, expiresAt: new Date(expiresAt) }
  c.header('Set-Cookie', sessionCookie(services.settings.origin, session, c.get('now')))
}
