/**
 * The MCP server for a local agent: forwards JSON-RPC from standard input to a gateway's `/mcp`, signing each request
 * with the agent's key. It only needs the key file and the URL. Messages are forwarded byte for byte, because
 * re-serializing numbers would round amounts.
 */
import { createInterface } from 'node:readline'
import { systemClock } from '../src/core/base/clock.ts'
import { timers } from '../src/core/base/timers.ts'
import { rootCause } from '../src/core/failures/root-cause.ts'
import { type SigningKey, signRequest } from '../src/people/identity/keys/sign-request.ts'
import { standardHeaders } from './standard-headers.ts'

/** Longer than the gateway's 15-second keep-alive interval. */
const SILENT_MS = 60_000

/** Pause before a lost notification stream is opened again. */
const REOPEN_MS = 2_000

/** JSON-RPC error codes of this proxy. @see https://www.jsonrpc.org/specification#error_object */
const codes = { notJson: -32700, notARequest: -32600, gateway: -32000 } as const

const SESSION = 'mcp-session-id'

type Id = string | number | null

/** Connection state of the gateway. */
interface Gateway {
  readonly endpoint: URL
  readonly key: SigningKey
  /** Session opened by the last `initialize`. */
  session: string | null
  /** Pending 2026-era requests by id; disconnecting cancels them at the gateway. */
  readonly underWay: Map<unknown, AbortController>
  /** Aborted when standard input closes. */
  readonly ended: AbortController
}

/** @property signal aborted when the response is no longer needed. */
interface Sending {
  readonly headers: Readonly<Record<string, string>>
  readonly signal: AbortSignal
}

/**
 * Runs until the client closes standard input or output. @param url gateway origin, such as `http://127.0.0.1:8787`. @param toolsets rooms whose
 * tools are offered, such as `wallets,cards`; null: all.
 */
export async function serveStdio({
  url,
  key,
  toolsets,
}: {
  url: string
  key: SigningKey
  toolsets: string | null
}): Promise<void> {
  const endpoint = new URL('/mcp', url)
  if (toolsets !== null) endpoint.searchParams.set('toolsets', toolsets)
  const gateway: Gateway = { endpoint, key, session: null, underWay: new Map(), ended: new AbortController() }
  const pending = new Set<Promise<void>>()
  const lines = createInterface({ input: process.stdin })
  process.stdout.once('error', () => lines.close())
  for await (const line of lines) {
    if (line.trim() === '') continue
    const forwarding = forward(line, gateway).finally(() => pending.delete(forwarding))
    pending.add(forwarding)
  }
  gateway.ended.abort()
  // The client has disconnected. A session that cannot be deleted expires by itself.
  if (gateway.session !== null) await send(gateway, 'DELETE', null).catch(() => {})
  await Promise.allSettled(pending)
}

/** Forwards one line and writes the responses. */
async function forward(line: string, gateway: Gateway): Promise<void> {
  const message = parseLine(line)
  if (message === undefined)
    return writeMessage(buildError(null, codes.notJson, 'The line is not valid JSON.'))
  if (typeof message !== 'object' || message === null || Array.isArray(message))
    return writeMessage(
      buildError(null, codes.notARequest, 'The line is not a JSON-RPC message: send one object per line.'),
    )
  const id = readId(message)
  const headers = standardHeaders(message)
  const cancelled = new AbortController()
  if (id !== undefined && headers['mcp-method'] !== undefined) gateway.underWay.set(id, cancelled)
  gateway.underWay.get(findCancelledId(message))?.abort()
  try {
    const { response, heard } = await sendWithSessionFallback(gateway, Buffer.from(line), {
      headers,
      signal: cancelled.signal,
    })
    if (isInitialize(message)) {
      gateway.session = response.headers.get(SESSION)
      void follow(gateway, gateway.session)
    }
    if (response.headers.get('content-type')?.startsWith('text/event-stream') === true)
      return await writeEvents(response, heard)
    const text = await response.text()
    if (id === undefined) return
    const answer = parseLine(text)
    if (response.status === 200) writeMessage(answer)
    // Requests rejected before JSON-RPC have no id.
    else if (isRpcError(answer)) writeMessage({ ...answer, id })
    else
      writeMessage(
        buildError(id, codes.gateway, `The gateway returned ${response.status}: ${text.slice(0, 2000)}`),
      )
  } catch (error) {
    if (id === undefined || cancelled.signal.aborted) return
    const detail = `The gateway at ${gateway.endpoint.origin} is unreachable: ${rootCause(error)}`
    writeMessage(buildError(id, codes.gateway, detail))
  } finally {
    if (gateway.underWay.get(id) === cancelled) gateway.underWay.delete(id)
  }
}

/**
 * Forwards the notifications of a session, such as changed tools, until the session or the client ends. A lost stream
 * is opened again; what was missed meanwhile can only be a change of the tools.
 */
async function follow(gateway: Gateway, session: string | null): Promise<void> {
  const { signal } = gateway.ended
  const isFollowed = () => session !== null && gateway.session === session && !signal.aborted
  for (let isFirst = true; isFollowed(); isFirst = false) {
    try {
      const { response, heard } = await send(gateway, 'GET', null, { signal })
      // The session or the key has ended.
      if (!response.ok && response.status < 500) return
      if (response.ok && !isFirst)
        writeMessage({ jsonrpc: '2.0', method: 'notifications/tools/list_changed' })
      if (response.ok) await writeEvents(response, heard)
      else await response.body?.cancel()
    } catch {
      // The gateway cannot be reached; calls report that.
    }
    await timers.sleep(REOPEN_MS, { signal }).catch(() => {})
  }
}

/** Sends a message; retries without the session if it has expired, because sessions are optional. */
async function sendWithSessionFallback(gateway: Gateway, body: Buffer, options: Sending) {
  const { session } = gateway
  const sent = await send(gateway, 'POST', body, options)
  if (sent.response.status !== 404 || session === null) return sent
  await sent.response.body?.cancel()
  if (gateway.session === session) gateway.session = null
  return send(gateway, 'POST', body, options)
}

/** Sends a signed request. @returns the response, and a function that resets the silence timeout. */
async function send(
  { endpoint, key, session }: Gateway,
  method: 'GET' | 'POST' | 'DELETE',
  body: Buffer | null,
  { headers = {}, signal }: Partial<Sending> = {},
) {
  const signed = await signRequest(key, {
    origin: endpoint.origin,
    method,
    target: `${endpoint.pathname}${endpoint.search}`,
    body,
    at: systemClock(),
  })
  const silent = new AbortController()
  const awaitSign = () =>
    timers.after(SILENT_MS, () => silent.abort(new Error('the gateway does not respond')), { isIdle: true })
  let cancel = awaitSign()
  const response = await fetch(endpoint, {
    method,
    headers: {
      ...headers,
      ...signed,
      ...(session === null ? {} : { [SESSION]: session }),
      ...(body === null ? {} : { 'content-type': 'application/json' }),
      accept: method === 'GET' ? 'text/event-stream' : 'application/json, text/event-stream',
    },
    body,
    signal: signal === undefined ? silent.signal : AbortSignal.any([silent.signal, signal]),
  })
  const heard = () => {
    cancel()
    cancel = awaitSign()
  }
  return { response, heard }
}

/** Writes each streamed message as a line; JSON messages are single data lines. */
async function writeEvents(response: Response, heard: () => void): Promise<void> {
  let rest = ''
  const decoder = new TextDecoder()
  for await (const bytes of response.body ?? []) {
    heard()
    const lines = (rest + decoder.decode(bytes, { stream: true })).split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines) if (line.startsWith('data: ')) process.stdout.write(`${line.slice(6)}\n`)
  }
}

function writeMessage(message: unknown): void {
  process.stdout.write(`${JSON.stringify(message)}\n`)
}

function parseLine(line: string): unknown {
  try {
    return JSON.parse(line)
  } catch {
    return undefined
  }
}

/** Returns the id of a request; undefined for notifications and responses. */
function readId(message: object): Id | undefined {
  const isAnswer = !('method' in message) && ('result' in message || 'error' in message)
  if (isAnswer || !('id' in message)) return undefined
  return typeof message.id === 'string' || typeof message.id === 'number' ? message.id : null
}

function isRpcError(answer: unknown): answer is object {
  return typeof answer === 'object' && answer !== null && 'jsonrpc' in answer && 'error' in answer
}

/** Returns the id of the request that a notification cancels. */
function findCancelledId(message: object): unknown {
  if (!('method' in message) || message.method !== 'notifications/cancelled') return undefined
  if (!('params' in message) || typeof message.params !== 'object' || message.params === null)
    return undefined
  return 'requestId' in message.params ? message.params.requestId : undefined
}

function isInitialize(message: object): boolean {
  return 'method' in message && message.method === 'initialize'
}

function buildError(id: Id, code: number, message: string): unknown {
  return { jsonrpc: '2.0', id, error: { code, message } }
}
