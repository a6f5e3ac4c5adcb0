/**
 * Fetches URLs that strangers choose. The name is resolved once, every address of it is judged, and the connection goes
 * to the judged address, which defeats DNS rebinding. Redirects are answers, bodies are cut off, one deadline covers
 * everything, and neither cookies nor a proxy of the environment take part.
 */
import * as http from 'node:http'
import * as https from 'node:https'
import { isIP } from 'node:net'
import { timers } from '../core/base/timers.ts'
import { addressIsPublic, readPublicUrl, stripBrackets } from './public-url.ts'
import { createHostResolver, type ResolverOptions } from './resolve-host.ts'

/** Takes a body as it arrives. @property maxBytes what follows is not read. @property timeoutMs covers the body alone. */
export interface PublicSink {
  readonly maxBytes: number
  readonly timeoutMs: number
  /**
   * Nothing more is read until it has returned. What it throws ends the exchange.
   * @returns false if it takes no more: the body is cut off behind this part.
   */
  readonly write: (part: Uint8Array) => Promise<boolean>
}

/**
 * @property maxBytes the rest of a longer body is not read, unless it has a sink. @property timeoutMs covers name, connection
 * and body; with a sink, all but the body.
 */
export interface PublicRequest {
  readonly url: string | URL
  readonly method: string
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string | Uint8Array | undefined
  readonly maxBytes: number
  readonly timeoutMs: number
  /** Also permits this machine's loopback: the sandbox's sellers. */
  readonly loopback: boolean
  /** Tells the receiver that this deployment asks, where it is known for it. */
  readonly identify?: boolean
  /** Chooses where the body of an answer goes besides its first `maxBytes`; null: nowhere. */
  readonly sink?: (head: PublicHead) => PublicSink | null
}

/** An answer without its body. Names are in lower case. */
export interface PublicHead {
  readonly status: number
  readonly headers: readonly (readonly [name: string, value: string])[]
}

/**
 * @property body at most `maxBytes`. @property bytes length that was read: of the body, or of what went into the sink.
 * @property truncated the seller sent more.
 */
export interface PublicAnswer extends PublicHead {
  readonly body: Uint8Array
  readonly truncated: boolean
  readonly bytes: number
}

/**
 * `refused-url`: the URL or an address of its name is not permitted. `unreachable`: no connection, or no trusted
 * certificate. `timeout`: the deadline passed. `protocol`: the connection broke, or what came is not HTTP.
 */
export type PublicFetchProblem = 'refused-url' | 'unreachable' | 'timeout' | 'protocol'

/** @property sent false: certainly no byte of the request has left; true: some may have. */
export interface PublicFetchError extends Error {
  readonly name: 'PublicFetchError'
  readonly problem: PublicFetchProblem
  readonly sent: boolean
}

export function isPublicFetchError(error: unknown): error is PublicFetchError {
  return error instanceof Error && error.name === 'PublicFetchError'
}

export type PublicFetch = (request: PublicRequest) => Promise<PublicAnswer>

/** Shorter than what common servers grant (5 s), so that a connection is rarely closed while being reused. */
const IDLE_CONNECTION_MS = 3_000

/**
 * Replacements for tests. @property permits judges addresses. @property ca the trusted certificates. @property idleMs how
 * long an idle connection is kept.
 */
export interface PublicFetchOptions extends ResolverOptions {
  readonly permits?: (address: string) => boolean
  readonly ca?: string
  readonly idleMs?: number
}

export function createPublicFetch({
  permits = addressIsPublic,
  ca,
  idleMs = IDLE_CONNECTION_MS,
  ...resolving
}: PublicFetchOptions = {}): PublicFetch {
  const resolveHost = createHostResolver(resolving)
  const keeping = { keepAlive: true, timeout: idleMs }
  const agents = {
    http: new http.Agent(keeping),
    https: new https.Agent({ ...keeping, ...(ca === undefined ? {} : { ca }) }),
  }

  /** @returns the addresses to connect to, one after the other. */
  const findAddresses = async (url: URL): Promise<readonly [string, ...string[]]> => {
    const host = stripBrackets(url.hostname)
    if (host === 'localhost') return ['127.0.0.1']
    if (isIP(host) !== 0) return [host]
    const [first, ...others] = await resolveHost(host).catch((cause: unknown) => {
      throw fetchError('unreachable', false, `${host} could not be resolved`, cause)
    })
    if (first === undefined) throw fetchError('unreachable', false, `${host} has no address`)
    const refused = [first, ...others].find((address) => !permits(address))
    if (refused !== undefined)
      throw fetchError('refused-url', false, `${host} is not on the public internet: it has ${refused}`)
    return [first, ...others]
  }

  return (request) => {
    const read = readPublicUrl(String(request.url), request)
    if ('refused' in read) return Promise.reject(fetchError('refused-url', false, read.detail))
    const { url } = read
    return within(request.timeoutMs, async (exchange) => {
      const [address, ...others] = await findAddresses(url)
      if (!exchange.isOver()) send({ request, url, address, others, agents, exchange })
    })
  }
}

/** Fetches from the public internet. @throws PublicFetchError */
export const fetchPublic: PublicFetch = createPublicFetch()

/** One request and its answer, which is settled once. */
interface Exchange {
  /** Marks that bytes may have left from now on. */
  markSent(): void
  isOver(): boolean
  /** Called once if the exchange fails, to drop the connection. */
  onFailure(drop: () => void): void
  finish(answer: PublicAnswer): void
  /** Replaces the deadline by a new one. */
  extend(timeoutMs: number): void
  fail(problem: PublicFetchProblem, detail: string, cause?: unknown): void
}

/** Runs an exchange under a deadline. The timer is ours, because signals of requests can be collected as garbage. */
function within(timeoutMs: number, start: (exchange: Exchange) => Promise<void>): Promise<PublicAnswer> {
  return new Promise((resolve, reject) => {
    let sent = false
    let over = false
    let drop = () => {}
    const end = (settle: () => void) => {
      if (over) return
      over = true
      cancelTimeout()
      settle()
    }
    const exchange: Exchange = {
      markSent: () => {
        sent = true
      },
      isOver: () => over,
      onFailure: (given) => {
        drop = given
      },
      finish: (answer) => end(() => resolve(answer)),
      extend: (ms) => {
        cancelTimeout()
        if (!over) cancelTimeout = startTimeout(ms)
      },
      fail: (problem, detail, cause) =>
        end(() => {
          reject(fetchError(problem, sent, detail, cause))
          drop()
        }),
    }
    const startTimeout = (ms: number) =>
      timers.after(ms, () => exchange.fail('timeout', `there was no whole answer within ${ms} ms`))
    let cancelTimeout = startTimeout(timeoutMs)
    start(exchange).catch((error: unknown) =>
      end(() =>
        reject(isPublicFetchError(error) ? error : fetchError('protocol', sent, String(error), error)),
      ),
    )
  })
}

/** @property others more judged addresses, to try while no connection was made. */
interface Sending {
  readonly request: PublicRequest
  readonly url: URL
  readonly address: string
  readonly others: readonly string[]
  readonly agents: { readonly http: http.Agent; readonly https: https.Agent }
  readonly exchange: Exchange
}

function send(sending: Sending): void {
  const { request, url, address, others, agents, exchange } = sending
  const { method, headers, body } = request
  const isSecure = url.protocol === 'https:'
  // The host is the address, so connections are pooled by address; the name serves the certificate's check.
  const outgoing = (isSecure ? https : http).request({
    agent: isSecure ? agents.https : agents.http,
    host: address,
    port: url.port === '' ? (isSecure ? 443 : 80) : Number(url.port),
    path: `${url.pathname}${url.search}`,
    method,
    ...(isIP(stripBrackets(url.hostname)) === 0 ? { servername: url.hostname } : {}),
    headers: {
      ...headers,
      ...(body === undefined ? {} : { 'content-length': String(Buffer.byteLength(body)) }),
      'accept-encoding': 'identity',
      host: url.host,
    },
  })
  let isConnected = false
  let hasAnswer = false
  exchange.onFailure(() => outgoing.destroy())
  // Nothing is written before the connection stands and its certificate was checked.
  outgoing.on('socket', (socket) => {
    const write = () => {
      if (exchange.isOver()) return
      isConnected = true
      exchange.markSent()
      outgoing.end(body)
    }
    if (outgoing.reusedSocket) write()
    else socket.once(isSecure ? 'secureConnect' : 'connect', write)
  })
  outgoing.on('error', (cause) => {
    const [next, ...left] = others
    if (isConnected || next === undefined)
      exchange.fail(isConnected ? 'protocol' : 'unreachable', `${url.host}: ${cause.message}`, cause)
    else if (!exchange.isOver()) send({ ...sending, address: next, others: left })
  })
  // A server that switches protocols closes the request without an error.
  outgoing.on('close', () => {
    if (isConnected && !hasAnswer)
      exchange.fail('protocol', `${url.host} closed the connection without an answer`)
  })
  outgoing.on('response', (response) => {
    hasAnswer = true
    receive(response, sending).catch((cause: unknown) => {
      const why = cause instanceof Error ? cause.message : String(cause)
      exchange.fail('protocol', `${url.host} broke off its answer: ${why}`, cause)
    })
  })
}

/** Reads an answer. A part is read when the one before it was taken. */
async function receive(
  response: http.IncomingMessage,
  { request: { maxBytes, sink: choose }, exchange }: Sending,
): Promise<void> {
  const head = { status: response.statusCode ?? 0, headers: toPairs(response.rawHeaders) }
  const sink = choose?.(head) ?? null
  if (sink !== null) exchange.extend(sink.timeoutMs)
  const limit = sink?.maxBytes ?? maxBytes
  const kept: Uint8Array[] = []
  let size = 0
  let truncated = false
  for await (const chunk of response as AsyncIterable<Buffer>) {
    if (exchange.isOver()) return
    const part = chunk.subarray(0, limit - size)
    truncated = part.length < chunk.length
    if (size < maxBytes) kept.push(part.subarray(0, maxBytes - size))
    size += part.length
    if (part.length > 0 && (await sink?.write(part)) === false) truncated = true
    if (truncated) break
  }
  const body = new Uint8Array(Buffer.concat(kept))
  exchange.finish({ ...head, body, truncated, bytes: size })
}

function toPairs(raw: readonly string[]): (readonly [string, string])[] {
  return raw.flatMap((name, index) => (index % 2 === 0 ? [[name.toLowerCase(), raw[index + 1] ?? '']] : []))
}

function fetchError(
  problem: PublicFetchProblem,
  sent: boolean,
  detail: string,
  cause?: unknown,
): PublicFetchError {
  return Object.assign(new Error(detail, { cause }), { name: 'PublicFetchError' as const, problem, sent })
}
