/** Serves a tool as a REST route. */
import type { Hono } from 'hono'
import { z } from 'zod'
import { isStorable } from '../../core/base/json.ts'
import type { Principal } from '../../core/base/principal.ts'
import { readTask } from '../../core/base/task-label.ts'
import { inOneLine } from '../../core/base/untrusted-text.ts'
import { Failure } from '../../core/failures/failure.ts'
import type { CatalogueEntry } from '../../kernel/catalogue.ts'
import type { Services } from '../../kernel/context.ts'
import { requireRail } from '../../kernel/gates/rail.ts'
import { run } from '../../kernel/run.ts'
import type { Tool } from '../../kernel/tool.ts'
import type { Seller } from '../../rails/selling/x402/sale.ts'
import { openAnswerStream, wantsBytes } from './answer-stream.ts'
import {
  browserCookie,
  clearSessionCookies,
  readKnownBrowser,
  renewSessionCookies,
  requireCaller,
  requireSameSitePage,
  setSessionCookies,
} from './authenticate.ts'
import { documentAnswer } from './document.ts'
import { openEventStream, wantsStream, withLastEventId } from './event-stream.ts'
import { limitAddress, unlimitAddress } from './limits.ts'
import { withoutCredentials } from './query-credentials.ts'
import { type Env, type HttpContext, mutatingMethods, parseJsonBody } from './request.ts'
import { listPaths, type ToolPath } from './tool-paths.ts'
import { isPaid, PAYMENT_HEADERS, readSentPayment, saleResponse } from './x402.ts'

/** Unpaid requests for what is sold that are answered at once, in a process. */
const MAX_CHALLENGES = 500

interface RouteParts {
  readonly services: Services
  /** Aborts when the process begins to end: streams end with it. */
  readonly ending: AbortSignal
  readonly seller: Seller
}

/** Method and path of a tool, as Hono's router knows them. @param at one of its paths. */
export function toolRoute({ route }: Pick<Tool, 'route'>, at: string): [method: string, path: string] {
  const [method = ''] = route.split(' ')
  return [method, at.replaceAll(/\{(\w+)\}/g, ':$1')]
}

/** Adds a tool at each of its paths. */
export function routeTool(app: Hono<Env>, entry: CatalogueEntry, parts: RouteParts): void {
  for (const path of listPaths(entry.tool, parts.services)) routePath(app, entry, path, parts)
}

/** Challenges in progress. They are not counted, so that a payer always learns the price; too many at once are shed. */
function createChallenges() {
  let running = 0
  return {
    /** @throws Failure `provider_unavailable` when too many are running. */
    run: async (challenge: () => Promise<Response>): Promise<Response> => {
      if (running >= MAX_CHALLENGES)
        throw new Failure('provider_unavailable', 'Too many prices are asked for at once.', { retryAfter: 1 })
      running += 1
      try {
        return await challenge()
      } finally {
        running -= 1
      }
    },
  }
}

function routePath(
  app: Hono<Env>,
  entry: CatalogueEntry,
  { at, fixed }: ToolPath,
  { services, seller, ending }: RouteParts,
): void {
  const { tool } = entry
  const challenges = createChallenges()
  app.on(...toolRoute(tool, at), async (c) => {
    // Serving a challenge is a public read; accepting a payment is not.
    const isMetered = tool.isSold && isPaid(c)
    const failClosed = tool.isSold ? isMetered : tool.effect !== 'read'
    const { rate } = tool
    if (tool.isSold && !isMetered) return challenges.run(() => sell(tool, c, { services, seller }))
    if (rate !== undefined) await limitAddress(services, c, rate, { failClosed, isMetered })
    if (rate !== undefined && isMetered)
      return sellMetered(tool, c, { services, seller, unlimit: () => unlimitAddress(services, c, rate) })
    if (tool.isSold) return sell(tool, c, { services, seller })
    if (tool.opensSession === true || tool.closesSession === true)
      requireSameSitePage(c, services.settings.origin)
    const principal = tool.who === 'public' ? c.get('caller').principal : requireCaller(c)
    const isStream = wantsStream(c, tool)
    const raw = isStream ? withLastEventId(c, readRawInput(c, fixed)) : readRawInput(c, fixed)
    const { body, replayed, decisionId } = await run(tool, callFacts(services, c, principal), raw)
    const isHead = c.req.method === 'HEAD'
    if (isStream) return openEventStream(services, { principal, tool, raw, ending, isHead })
    if (wantsBytes(c, tool))
      return openAnswerStream(services, { principal, id: c.req.param('id') ?? '', isHead })
    if (decisionId !== null) c.set('decisionId', decisionId)
    if (tool.closesSession === true) clearSessionCookies(services.settings, c)
    else await renewSessionCookies(services.settings, c)
    if (replayed) c.header('Idempotency-Replayed', 'true')
    if (tool.effect === 'spend' && c.req.header('idempotency-key') === undefined)
      c.header('Bursar-Hint', 'no Idempotency-Key; a repeat pays again')
    const told = await deliverSession(services, c, { tool, body })
    const shown = principal.kind === 'session' ? inOneLine(told, tool.verbatim) : told
    const isWaiting = tool.waits !== undefined && body.status === tool.waits
    return (await documentAnswer(c, entry, shown)) ?? c.json(shown, isWaiting ? 202 : 200)
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
  const call = tool.decode(readRawInput(c))
  if (call.sell === null) throw new Error(`${tool.name} is not for sale`)
  await requireRail(tool, services)
  const { principal } = c.get('caller')
  const { sell: make, input } = call
  const deliver = () => make({ ...callFacts(services, c, principal), afterCommit: () => {} })
  const payment = readSentPayment(c)
  const route = `${c.req.method} ${c.req.path}`
  return saleResponse(await seller.sell({ route, input, payment, paymentPlace: PAYMENT_HEADERS, deliver }))
}

/** Members written out before the one spread: beside another spread, or after this one, each takes as long as all others. */
function callFacts(services: Services, c: HttpContext, principal: Principal) {
  return {
    principal,
    requestId: c.get('requestId'),
    clientAddress: c.get('clientAddress'),
    knownBrowser: readKnownBrowser(services.settings, c),
    now: c.get('now'),
    idempotencyKey: readIdempotencyKey(c),
    task: readTask(c.req.header('bursar-task'), 'Bursar-Task'),
    refusal: c.get('caller').refusal,
    ...services,
  }
}

function readIdempotencyKey(c: HttpContext): string | null {
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
function readRawInput(c: HttpContext, fixed: ToolPath['fixed'] = {}): unknown {
  const parameters = { ...c.req.param(), ...fixed }
  for (const [name, value] of Object.entries(parameters)) requireText(name, value)
  if (mutatingMethods.has(c.req.method)) {
    for (const name of Object.keys(c.req.queries())) refuseQueryMember(name)
    const body = parseJsonBody(c)
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

/** A route with a body reads nothing else. @throws Failure `invalid_request`. */
function refuseQueryMember(name: string): never {
  const path = withoutCredentials(name).slice(0, 32)
  const message = 'is not read from the query; send members in the body'
  throw new Failure('invalid_request', `${path}: ${message}`, { issues: [{ path, message }] })
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

const tokenHolder = z.looseObject({ sessionToken: z.string() })
const issuedSession = tokenHolder.extend({
  account: z.looseObject({ guest: z.boolean() }),
  personId: z.string(),
  expiresAt: z.iso.datetime(),
})

/** @returns the session that a value holds with its token; null if it holds none. */
function findIssuedSession(value: unknown): z.output<typeof issuedSession> | null {
  return tokenHolder.safeParse(value).success ? issuedSession.parse(value) : null
}

/**
 * Delivers the session of a response. Browsers receive its token in the cookie only, because scripts of a page could leak
 * it; other clients in the body, and with a sign-in as a cookie too. @returns the body to send.
 */
async function deliverSession(
  services: Services,
  c: HttpContext,
  { tool, body }: { tool: Tool; body: Record<string, unknown> },
): Promise<Record<string, unknown>> {
  const isBrowser = c.req.header('sec-fetch-site') !== undefined
  const own = findIssuedSession(body)
  if (own !== null && (isBrowser || tool.opensSession === true)) await openCookies(services, c, own)
  if (!isBrowser) return body
  if (own !== null) return withoutToken(own)
  // A program's session is a member of the outcome of its sign-in.
  const held = findIssuedSession(body.session)
  if (held === null) return body
  await openCookies(services, c, held)
  return { ...body, session: withoutToken(held) }
}

function withoutToken({ sessionToken: _, ...rest }: Record<string, unknown>): Record<string, unknown> {
  return rest
}

async function openCookies(
  { settings }: Services,
  c: HttpContext,
  { account, personId, sessionToken, expiresAt }: z.output<typeof issuedSession>,
): Promise<void> {
  const session = { sessionToken, expiresAt: new Date(expiresAt) }
  await setSessionCookies(settings, c, { account, session })
  // Guests are opened without limit, and have no address.
  if (!account.guest) c.header('Set-Cookie', browserCookie(settings, c, personId), { append: true })
}
