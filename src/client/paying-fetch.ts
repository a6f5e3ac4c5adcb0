/**
 * A `fetch` that pays. The URL is asked directly; only a 402 that asks for a payment by x402 or MPP is bought through the gateway.
 * A request and its repeats are one purchase until it had an answer.
 */
import { BursarProblem } from './problem.ts'
import { spoolBody } from './spool-body.ts'

/** @property maxPrice most to pay for an answer, in USDC. 0.10 by default. @property purpose for the owner's records. */
export interface PayOptions {
  readonly maxPrice?: string | undefined
  readonly purpose?: string | undefined
  /** Calls with one key are one purchase, also in another process and after an answer. */
  readonly idempotencyKey?: string | undefined
}

export type PayingFetch = (
  input: string | URL | Request,
  init?: RequestInit,
  options?: PayOptions,
) => Promise<Response>

type Answer = Readonly<Record<string, unknown>>

/** The gateway, as a purchase needs it. */
export interface Gateway {
  /** Asks the seller itself. */
  readonly ask: (url: string, init: RequestInit) => Promise<Response>
  /** @throws BursarProblem, BursarUnreachable. */
  readonly buy: (input: Answer, options: { idempotencyKey: string; signal: AbortSignal }) => Promise<Answer>
  /** Opens the bytes of an answer. @throws BursarProblem, BursarUnreachable. */
  readonly openAnswer: (purchaseId: string, signal: AbortSignal) => Promise<Response>
}

/** A purchase that had no answer yet: a repeat sends exactly this again, but for the equal body. */
interface Pending {
  readonly key: string
  readonly input: Answer
}

const MAX_PRICE = '0.10'
const PAYMENT_REQUIRED = 402
const BAD_GATEWAY = 502
const METHODS = new Set(['GET', 'POST', 'PUT', 'PATCH', 'DELETE'])
/** Fields of connections, proxies, payments and the gateway, which the gateway refuses. */
const WITHHELD =
  /^(connection|keep-alive|te|trailer|transfer-encoding|upgrade|host|content-length|expect|accept-encoding|authorization|forwarded|via|x-real-ip)$|^(proxy-|payment|x-payment|x-forwarded-|x-http-method|(x-)?bursar-)/
/** Fields that differ between a request and its repeat. */
const VOLATILE =
  /^(traceparent|tracestate|baggage|sentry-trace|date|x-cloud-trace-context|(x-)?(request|correlation|trace|client-request|amzn-trace)-id|(x-)?retry-(count|attempt)|x-stainless-(retry-count|timeout))$|^x-(b3|datadog)-/
/** Codes after which the purchase may have been paid, or may yet be. */
const UNKNOWN: ReadonlySet<string> = new Set([
  'internal',
  'idempotency_in_progress',
  'settlement_pending',
  'provider_unavailable',
  'request_timeout',
])
/** Codes after which the same purchase may go on. */
const GOES_ON: ReadonlySet<string> = new Set([
  'approval_required',
  'rate_limited',
  'controls_unavailable',
  'screening_unavailable',
  'rates_unavailable',
])

export function createPayingFetch(gateway: Gateway): PayingFetch {
  /** By what an equal request has in common. */
  const pending = new Map<string, Pending>()

  return async (input, init = {}, options = {}) => {
    const request = new Request(input, init)
    const { signal } = request
    const body = await spoolBody(request, init.body)
    const ask = (again = false) =>
      gateway.ask(request.url, {
        ...init,
        method: request.method,
        headers: request.headers,
        redirect: request.redirect,
        credentials: request.credentials,
        signal,
        ...(again ? body.resend() : body.send()),
      })
    const wanted = { request, options }
    // The seller is not asked again for an answer that is being bought.
    const known = body.bytes === undefined ? undefined : pending.get(await describe(request, body.bytes))
    const first = known === undefined ? await ask() : undefined
    if (first !== undefined && first.status !== PAYMENT_REQUIRED) return withoutOurs(first)
    const refusal = first === undefined ? null : await findRefusal(request, first)
    if (first !== undefined && refusal !== null) return passOn(first, refusal)
    const bytes = await body.whole()
    if (bytes === null) return first === undefined ? ask(true) : passOn(first, 'body_too_long')
    const equal = await describe(request, bytes)
    const purchase = options.idempotencyKey === undefined ? pending.get(equal) : undefined
    const started = purchase ?? {
      key: options.idempotencyKey ?? crypto.randomUUID(),
      input: toPurchase(wanted),
    }
    if (options.idempotencyKey === undefined) pending.set(equal, started)
    /** Ends what makes repeats of the request one purchase. */
    const forget = () => {
      if (pending.get(equal) === started) pending.delete(equal)
    }
    let bought: Answer
    try {
      const whole = { ...started.input, ...toBodyMember(bytes) }
      bought = await gateway.buy(whole, { idempotencyKey: started.key, signal })
    } catch (error) {
      if (!(error instanceof BursarProblem)) throw error
      const { code, problem } = error
      const isFinal = 'isFinal' in problem && problem.isFinal === true
      if (UNKNOWN.has(code) && !isFinal) return toProblem(code, { ...problem })
      if (!GOES_ON.has(code)) forget()
      const asked = first ?? (await ask(true))
      return asked.status === PAYMENT_REQUIRED ? passOn(asked, toCode(error)) : withoutOurs(asked)
    }
    return toResponse(gateway, bought, { signal, forget, askAgain: () => ask(true) })
  }
}

/** Hash of what equal requests have in common: method, URL, fields and body. */
async function describe(request: Request, bytes: Uint8Array): Promise<string> {
  const fields = [...request.headers].filter(([name]) => !VOLATILE.test(name))
  const head = new TextEncoder().encode(JSON.stringify([request.method, request.url, fields]))
  const whole = new Uint8Array(head.length + bytes.length)
  whole.set(head)
  whole.set(bytes, head.length)
  const hash = new Uint8Array(await crypto.subtle.digest('SHA-256', whole))
  return [...hash].map((byte) => byte.toString(16).padStart(2, '0')).join('')
}

/** Why a 402 is none to pay, or not from here; null: it is bought. */
async function findRefusal(request: Request, response: Response): Promise<string | null> {
  if (!(await asksForPayment(response))) return 'terms_not_payable'
  if (!METHODS.has(request.method)) return 'method_not_supported'
  // Another method or body may have been sent there.
  if (response.redirected && request.method !== 'GET') return 'redirected'
  const login = request.headers.get('authorization')
  return login === null || /^bearer [\x21-\x7e]+$/i.test(login) ? null : 'authorization_not_supported'
}

async function asksForPayment(response: Response): Promise<boolean> {
  const { headers } = response
  if (headers.has('payment-required')) return true
  if (/(^|,)\s*payment\s/i.test(headers.get('www-authenticate') ?? '')) return true
  // The first version of x402 asks in the body.
  const start = await readStart(response.clone())
  return /"x402Version"\s*:/.test(start) && /"accepts"\s*:/.test(start)
}

const MAX_CHALLENGE = 65_536
/** Longest wait for a body that may ask: one that drips is the caller's to read. */
const CHALLENGE_MS = 5_000

async function readStart(response: Response): Promise<string> {
  const reader = response.body?.getReader()
  if (reader === undefined) return ''
  // A read that waits then ends.
  const timer = setTimeout(() => void reader.cancel().catch(() => undefined), CHALLENGE_MS)
  const decoder = new TextDecoder()
  let text = ''
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (done || text.length > MAX_CHALLENGE) break
      text += decoder.decode(value, { stream: true })
    }
  } finally {
    clearTimeout(timer)
  }
  // The other branch is the caller's, and goes on.
  void reader.cancel().catch(() => undefined)
  return text
}

function toPurchase({ request, options }: { request: Request; options: PayOptions }): Answer {
  const headers = [...request.headers].filter(([name]) => !WITHHELD.test(name))
  const login = request.headers.get('authorization')
  return {
    url: request.url,
    method: request.method,
    maxAmount: options.maxPrice ?? MAX_PRICE,
    ...(options.purpose === undefined ? {} : { purpose: options.purpose }),
    ...(headers.length === 0 ? {} : { headers: Object.fromEntries(headers) }),
    ...(login === null
      ? {}
      : { authorization: { type: 'bearer', token: login.slice('bearer '.length).trim() } }),
  }
}

const CHUNK = 32_768

function toBodyMember(bytes: Uint8Array): Answer {
  if (bytes.length === 0) return {}
  let binary = ''
  for (let at = 0; at < bytes.length; at += CHUNK)
    binary += String.fromCharCode(...bytes.subarray(at, at + CHUNK))
  return { bodyBase64: btoa(binary) }
}

/** The answer that was bought, as the seller gave it. */
async function toResponse(
  gateway: Gateway,
  bought: Answer,
  {
    signal,
    forget,
    askAgain,
  }: { signal: AbortSignal; forget: () => void; askAgain: () => Promise<Response> },
): Promise<Response> {
  const { status, purchaseId, charged, asset } = bought
  const answer = bought.response as Delivery | null
  const paid: Record<string, string> =
    typeof purchaseId === 'string'
      ? { 'bursar-purchase': purchaseId, 'bursar-charged': `${String(charged)} ${String(asset)}` }
      : {}
  if (status === 'free' && answer?.truncated === true) {
    forget()
    return askAgain()
  }
  if ((status !== 'delivered' && status !== 'free') || answer === null) {
    const code = status === 'delivered' ? 'answer_expired' : String(status)
    return toProblem(
      code,
      { ...problemTexts(code), purchaseId, charged, lastFailure: bought.lastFailure },
      paid,
    )
  }
  const headers = new Headers({ ...answer.headers, ...paid })
  if (answer.contentType !== null) headers.set('content-type', answer.contentType)
  if (!answer.complete) headers.set('bursar-complete', 'false')
  const body = answer.truncated
    ? untilRead(await gateway.openAnswer(String(purchaseId), signal), forget)
    : readBody(answer)
  // It is whole and in the caller's hands.
  if (!answer.truncated) forget()
  return new Response(EMPTY.includes(answer.status) ? null : body, { status: answer.status, headers })
}

interface Delivery {
  readonly status: number
  readonly contentType: string | null
  readonly headers: Readonly<Record<string, string>>
  readonly body: string | null
  readonly bodyBase64: string | null
  readonly truncated: boolean
  readonly complete: boolean
}

function readBody({ body, bodyBase64 }: Delivery): string | Uint8Array<ArrayBuffer> {
  if (body !== null) return body
  return Uint8Array.from(atob(bodyBase64 ?? ''), (character) => character.charCodeAt(0))
}

/** Passes bytes on. @param forget once they were read to the end, or the reader has enough: not when they break off. */
function untilRead({ body }: Response, forget: () => void): ReadableStream<Uint8Array> | null {
  const reader = body?.getReader()
  if (reader === undefined) return null
  return new ReadableStream<Uint8Array>(
    {
      pull: async (controller) => {
        const { done, value } = await reader.read()
        if (!done) return controller.enqueue(value)
        forget()
        controller.close()
      },
      cancel: async (reason) => {
        forget()
        await reader.cancel(reason)
      },
    },
    { highWaterMark: 0 },
  )
}

/** The seller's 402 with the reason why it was not paid. */
function passOn(response: Response, code: string): Response {
  return withFields(response, { 'bursar-problem': code.slice(0, 64) })
}

/** Statuses of responses that have no body. */
const EMPTY = [204, 205, 304]

/** Fields that say what was bought: a seller that sends them itself would be believed. */
const OURS = ['bursar-purchase', 'bursar-charged', 'bursar-problem', 'bursar-complete']

/** A response without fields of ours, which its sender made up. */
function withoutOurs(response: Response): Response {
  return OURS.some((name) => response.headers.has(name)) ? withFields(response, {}) : response
}

/** A response with these fields of ours and no others. */
function withFields(response: Response, own: Readonly<Record<string, string>>): Response {
  const headers = new Headers(response.headers)
  for (const name of OURS) headers.delete(name)
  for (const [name, value] of Object.entries(own)) headers.set(name, value)
  const { status, statusText, url, redirected } = response
  const passed = new Response(EMPTY.includes(status) ? null : response.body, { status, statusText, headers })
  return Object.defineProperties(passed, { url: { value: url }, redirected: { value: redirected } })
}

function toCode({ code, problem }: BursarProblem): string {
  return code === 'terms_not_payable' && problem.reason === 'over_max_amount' ? 'max_price' : code
}

const HINT = 'Make the same request again: it is served from the same purchase, and nothing is paid twice.'

function problemTexts(code: string): {
  readonly title: string
  readonly detail: string
  readonly hint: string
} {
  switch (code) {
    case 'undelivered':
      return {
        title: 'Paid, and nothing came',
        detail: 'The seller took the payment and did not answer.',
        hint: HINT,
      }
    case 'answer_expired':
      return {
        title: 'The answer is no longer kept',
        detail: 'The answer to this purchase came over a day ago, or newer answers needed its room.',
        hint: 'Give another idempotencyKey to buy it again.',
      }
    default:
      return { title: 'The payment is not settled yet', detail: 'It may be paid yet.', hint: HINT }
  }
}

/** Answers a request that may have been paid, in place of the seller. */
function toProblem(code: string, members: Answer, headers: Record<string, string> = {}): Response {
  const problem = { type: 'about:blank', ...members, status: BAD_GATEWAY, code }
  return new Response(JSON.stringify(problem), {
    status: BAD_GATEWAY,
    headers: { ...headers, 'content-type': 'application/problem+json', 'bursar-problem': code.slice(0, 64) },
  })
}
