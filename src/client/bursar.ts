/**
 * The client of the API for Node, Bun, Deno and browsers. Every operation is a function under its name in the catalogue:
 * `bursar.wallets.transfer({ … })`. Retries are safe: a call keeps its idempotency key, so that it happens once.
 */
import type { CallOptions, Pages } from './call.ts'
import { readEvents } from './event-stream.ts'
import { type Event, type Operations, type Problem, routes } from './operations.ts'
import { createPayingFetch, type PayingFetch } from './paying-fetch.ts'
import { BursarProblem, BursarUnreachable, PaymentRequired } from './problem.ts'
import { type AgentKey, createSigner, type SignedParts } from './sign.ts'

/**
 * One credential, or none: then browsers send their session cookie.
 * @property apiKey `bsk_…` @property agentKey the object that `bursar agent new` writes @property session a session token
 */
export interface BursarOptions {
  /** Origin of the gateway, such as `http://127.0.0.1:8787`. */
  readonly url: string
  readonly apiKey?: string | undefined
  readonly agentKey?: AgentKey | undefined
  readonly session?: string | undefined
  /** How often a call that failed on the way is tried again. 4 unless told. */
  readonly retries?: number | undefined
  /** How long a call waits for a payment whose settlement is pending, in milliseconds. A minute unless told. */
  readonly settleWithinMs?: number | undefined
  /** Replaces the runtime's `fetch`. */
  readonly fetch?: typeof fetch | undefined
}

export interface ListenOptions {
  /** Types to hear of, such as `transfer.confirmed`; all unless told. */
  readonly types?: readonly string[]
  /** Id of the last event that was heard. Absent: only what happens from now on. */
  readonly after?: string
  readonly signal?: AbortSignal
  /** Hears when the stream opens, and when it breaks and is opened again: `open`, `broken`. */
  readonly onStatus?: (status: 'open' | 'broken') => void
}

/** A call as it is sent. */
interface Sent {
  readonly method: string
  readonly url: URL
  readonly body: Uint8Array<ArrayBuffer> | null
  readonly idempotencyKey: string | null
  readonly headers?: Readonly<Record<string, string>>
  readonly signal: AbortSignal | null
}

type Answer = Record<string, unknown>

const PAYMENT_REQUIRED = 402
const RETRIES = 4
const SETTLE_WITHIN_MS = 60_000
const SETTLE_EVERY_MS = 1_000
const FIRST_WAIT_MS = 250
const MAX_WAIT_MS = 20_000
/** A call that is told to wait longer fails: its caller knows better what to do meanwhile. */
const MAX_RETRY_AFTER_MS = 60_000

/** Codes under which nothing was done, or the first call still runs: the same call may be sent again. */
const again: ReadonlySet<string> = new Set([
  'idempotency_in_progress',
  'rate_limited',
  'request_timeout',
  'provider_unavailable',
  'controls_unavailable',
  'screening_unavailable',
  'facilitator_unavailable',
  'rates_unavailable',
  'settlement_pending',
])

// biome-ignore lint/suspicious/noUnsafeDeclarationMerging: the operations are defined by the constructor, from the table of routes.
export class Bursar {
  /**
   * A `fetch` that pays: it asks the URL itself, and buys the answer where a 402 asks for a payment (x402, MPP). `Bursar-Purchase` and
   * `Bursar-Charged` of a response say what was paid, `Bursar-Problem` why a 402 was not. Needs no receiver.
   * @throws TypeError as `fetch` does. @throws BursarUnreachable when the gateway is gone: an equal request goes on.
   */
  readonly fetch: PayingFetch
  readonly #origin: string
  readonly #options: BursarOptions
  readonly #credential: (parts: SignedParts) => Promise<Record<string, string>>

  /** @throws TypeError if the URL is not one, or more than one credential is given. */
  constructor(options: BursarOptions) {
    this.#origin = new URL(options.url).origin
    this.#options = options
    this.#credential = chooseCredential(options)
    const { fetch: ask = fetch } = options
    this.fetch = createPayingFetch({
      ask: (url, init) => ask(url, init),
      buy: (input, call) =>
        this.#call({ method: 'POST', path: '/api/purchases', isRepeatable: true }, { ...input }, call),
      openAnswer: (id, signal) => this.#openAnswer(id, signal),
    })
    for (const [name, [method, path, isRepeatable, list]] of Object.entries(routes)) {
      const call = (input: Answer = {}, callOptions: CallOptions = {}) =>
        this.#call({ method, path, isRepeatable }, input, callOptions)
      define(
        this,
        name.split('.'),
        list === '' ? call : (input?: Answer, more?: CallOptions) => pages(call, list, input, more),
      )
    }
  }

  /**
   * Iterates over events as they happen. Reconnects by itself, and misses no event in between.
   * @throws BursarProblem when the gateway refuses, for example because the key was revoked.
   */
  async *listen({ types = [], after, signal, onStatus }: ListenOptions = {}): AsyncGenerator<Event> {
    let last = after
    for (let failures = 0; !isAborted(signal); ) {
      const url = new URL('/api/events', this.#origin)
      if (types.length > 0) url.searchParams.set('type', types.join(','))
      const headers = {
        accept: 'text/event-stream',
        ...(last === undefined ? {} : { 'last-event-id': last }),
      }
      failures += 1
      let told: number | undefined
      try {
        const response = await this.#send({
          method: 'GET',
          url,
          body: null,
          idempotencyKey: null,
          headers,
          signal: signal ?? null,
        })
        if (!response.ok) throw await readProblem(response)
        onStatus?.('open')
        for await (const { id, data } of readEvents(response)) {
          // Only a stream that says something is one.
          failures = 0
          if (data !== null) yield JSON.parse(data)
          if (id !== '') last = id
        }
      } catch (error) {
        if (isAborted(signal)) return
        if (error instanceof BursarProblem && again.has(error.code)) told = error.problem.retryAfter
        else if (!(error instanceof BursarUnreachable)) throw error
      }
      onStatus?.('broken')
      await pause(Math.min(waitMs(failures, told), MAX_RETRY_AFTER_MS), signal).catch(() => undefined)
    }
  }

  async #call(
    { method, path, isRepeatable }: { method: string; path: string; isRepeatable: boolean },
    input: Answer,
    { idempotencyKey, signal }: CallOptions,
  ): Promise<Answer> {
    const { url, body } = buildRequest(this.#origin, { method, path, input })
    const isRead = method === 'GET'
    // The gateway knows no keys of an operation that is not repeatable: to send it twice is to do it twice.
    const key = isRepeatable ? (idempotencyKey ?? crypto.randomUUID()) : null
    const sent: Sent = { method, url, body, idempotencyKey: key, signal: signal ?? null }
    const answer = await this.#tryAgain(sent, isRead || key !== null)
    // The same key asks for the outcome, and never pays again.
    const until = Date.now() + (this.#options.settleWithinMs ?? SETTLE_WITHIN_MS)
    let latest = answer
    while (!isRead && key !== null && latest.status === 'settlement_pending' && Date.now() < until) {
      await pause(SETTLE_EVERY_MS, signal)
      latest = await this.#tryAgain(sent, true)
    }
    return latest
  }

  async #openAnswer(purchaseId: string, signal: AbortSignal): Promise<Response> {
    const response = await this.#send({
      method: 'GET',
      url: new URL(`/api/purchases/${encodeURIComponent(purchaseId)}/response`, this.#origin),
      body: null,
      idempotencyKey: null,
      headers: { accept: 'application/octet-stream' },
      signal,
    })
    if (!response.ok) throw await readProblem(response)
    return response
  }

  async #tryAgain(sent: Sent, isSafe: boolean): Promise<Answer> {
    const retries = this.#options.retries ?? RETRIES
    for (let failures = 1; ; failures += 1) {
      try {
        const response = await this.#send(sent)
        if (response.ok) return await readBody(response)
        const problem = await readProblem(response)
        if (!(problem instanceof BursarProblem)) throw problem
        const mayRepeat = isSafe ? again.has(problem.code) : problem.code === 'rate_limited'
        const wait = waitMs(failures, problem.problem.retryAfter)
        if (!mayRepeat || failures > retries || wait > MAX_RETRY_AFTER_MS) throw problem
        await pause(wait, sent.signal)
      } catch (error) {
        if (!(error instanceof BursarUnreachable) || !isSafe || failures > retries) throw error
        await pause(waitMs(failures), sent.signal)
      }
    }
  }

  async #send({ method, url, body, idempotencyKey, headers, signal }: Sent): Promise<Response> {
    const { fetch: send = fetch } = this.#options
    const credential = await this.#credential({ method, url, body, idempotencyKey })
    try {
      return await send(url, {
        method,
        body,
        signal,
        // A redirect would take the credential and the body elsewhere, or make a GET of a payment.
        redirect: 'manual',
        // A request with two credentials is refused, and a browser would add its session cookie.
        credentials: Object.keys(credential).length > 0 ? 'omit' : 'same-origin',
        headers: {
          accept: 'application/json',
          ...(body === null ? {} : { 'content-type': 'application/json' }),
          ...(idempotencyKey === null ? {} : { 'idempotency-key': idempotencyKey }),
          ...headers,
          ...credential,
        },
      })
    } catch (cause) {
      if (isAborted(signal)) throw cause
      throw new BursarUnreachable(`The gateway at ${url.origin} cannot be reached.`, cause)
    }
  }
}

export interface Bursar extends Operations {}

function chooseCredential({
  apiKey,
  agentKey,
  session,
}: BursarOptions): (parts: SignedParts) => Promise<Record<string, string>> {
  if ([apiKey, agentKey, session].filter((one) => one !== undefined).length > 1)
    throw new TypeError('Give one credential: apiKey, agentKey or session.')
  if (agentKey !== undefined) return createSigner(agentKey)
  const token = apiKey ?? session
  const headers: Record<string, string> = token === undefined ? {} : { authorization: `Bearer ${token}` }
  return async () => headers
}

/** Puts members of the path into the path, and the others into the query or the body. */
function buildRequest(
  origin: string,
  { method, path, input }: { method: string; path: string; input: Answer },
): { url: URL; body: Uint8Array<ArrayBuffer> | null } {
  const rest = { ...input }
  const filled = path.replace(/\{(\w+)\}/g, (_, name: string) => {
    const value = rest[name]
    delete rest[name]
    if (typeof value !== 'string' || value === '') throw new TypeError(`${name} is missing.`)
    // A URL resolves these, and the call would be another operation.
    if (value === '.' || value === '..') throw new TypeError(`${name} is not an id.`)
    return encodeURIComponent(value)
  })
  const url = new URL(filled, origin)
  const members = Object.entries(rest).filter(([, value]) => value !== undefined)
  if (method === 'GET') {
    for (const [name, value] of members) url.searchParams.set(name, String(value))
    return { url, body: null }
  }
  const hasBody = method !== 'DELETE' || members.length > 0
  return { url, body: hasBody ? new TextEncoder().encode(JSON.stringify(Object.fromEntries(members))) : null }
}

function pages(
  call: (input: Answer, options?: CallOptions) => Promise<Answer>,
  list: string,
  input: Answer = {},
  options: CallOptions = {},
): Pages<Answer, unknown> {
  return {
    // biome-ignore lint/suspicious/noThenProperty: a list is awaited for its first page.
    then: (resolve, reject) => call(input, options).then(resolve, reject),
    async *[Symbol.asyncIterator]() {
      const [member = '', continued = ''] = list.split(' ')
      for (let from = input; ; ) {
        const page = await call(from, options)
        const entries = page[member]
        if (Array.isArray(entries)) yield* entries
        if (typeof page.nextCursor !== 'string') return
        from = { ...input, [continued]: page.nextCursor }
      }
    },
  }
}

async function readBody(response: Response): Promise<Answer> {
  const body: unknown = await response.json().catch(() => null)
  if (isRecord(body)) return body
  throw new BursarUnreachable('The response is no JSON of the gateway.')
}

async function readProblem(response: Response): Promise<Error> {
  const body = await response.json().catch(() => null)
  if (response.status === PAYMENT_REQUIRED && isRecord(body)) return new PaymentRequired(body)
  if (isRecord(body) && typeof body.code === 'string') return new BursarProblem(body as unknown as Problem)
  throw new BursarUnreachable(`Something else than the gateway answered with status ${response.status}.`)
}

/** The delay that the gateway asks for; otherwise a longer one after each failure, randomized so that clients spread out. */
function waitMs(failures: number, toldSeconds?: number): number {
  if (toldSeconds !== undefined) return toldSeconds * 1000
  return Math.min(FIRST_WAIT_MS * 2 ** failures * (0.5 + Math.random()), MAX_WAIT_MS)
}

function pause(ms: number, signal: AbortSignal | null | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    const stop = () => {
      clearTimeout(timer)
      reject(signal?.reason)
    }
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', stop)
      resolve()
    }, ms)
    if (isAborted(signal)) stop()
    else signal?.addEventListener('abort', stop, { once: true })
  })
}

/** Defines `wallets.transfers.list` as a member of a member. */
function define(at: object, [name = '', ...below]: readonly string[], call: unknown): void {
  const members = at as Record<string, unknown>
  if (below.length === 0) members[name] = call
  else {
    members[name] ??= {}
    define(members[name] as object, below, call)
  }
}

function isAborted(signal: AbortSignal | null | undefined): boolean {
  return signal?.aborted === true
}

function isRecord(value: unknown): value is Answer {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
