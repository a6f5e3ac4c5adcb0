/**
 * The MCP server for a local agent: reads JSON-RPC from standard input and passes it to a gateway's `/mcp`, each request
 * signed with the agent's own key. Nothing but the key file and the URL is needed. A message is passed on as it was
 * written, byte for byte: reading its numbers here would round an amount before the gateway can judge it.
 */
import { createInterface } from 'node:readline'
import { systemClock } from '../src/base/clock.ts'
import { rootCause } from '../src/failures/root-cause.ts'
import { type SigningKey, signRequest } from '../src/identity/keys/sign-request.ts'
import { standardHeaders } from './standard-headers.ts'

/** Longer than the gateway is ever silent: a stream says every quarter of a minute that it is there. */
const SILENT_MS = 60_000

/** The codes of JSON-RPC that this end gives. @see https://www.jsonrpc.org/specification#error_object */
const codes = { notJson: -32700, notARequest: -32600, gateway: -32000 } as const

const SESSION = 'mcp-session-id'

type Id = string | number | null

/** The gateway, and what it knows this process by. */
interface Gateway {
  readonly endpoint: URL
  readonly key: SigningKey
  /** The session that the last `initialize` opened. */
  session: string | null
  /** Requests of 2026 that are under way, by id: the gateway is told that one is cancelled by going away. */
  readonly underWay: Map<unknown, AbortController>
}

/** What goes with a message. @property signal aborted where its answer is not wanted any more. */
interface Sending {
  readonly headers: Readonly<Record<string, string>>
  readonly signal: AbortSignal
}

/** Serves until standard input ends. @param url of the gateway, such as `http://127.0.0.1:8787`. */
export async function serveStdio({ url, key }: { url: string; key: SigningKey }): Promise<void> {
  const gateway: Gateway = { endpoint: new URL('/mcp', url), key, session: null, underWay: new Map() }
  const underWay = new Set<Promise<void>>()
  for await (const line of createInterface({ input: process.stdin })) {
    if (line.trim() === '') continue
    const passing = pass(line, gateway).finally(() => underWay.delete(passing))
    underWay.add(passing)
  }
  // Nobody is left to be asked. A session that is left behind ends by itself.
  if (gateway.session !== null) await send(gateway, 'DELETE', null).catch(() => {})
  await Promise.allSettled(underWay)
}

/** Passes one line on, and writes whatever comes back. */
async function pass(line: string, gateway: Gateway): Promise<void> {
  const message = parsed(line)
  if (message === undefined) return tell(failed(null, codes.notJson, 'This is not JSON.'))
  if (typeof message !== 'object' || message === null || Array.isArray(message))
    return tell(failed(null, codes.notARequest, 'This is not a JSON-RPC message: one object a line.'))
  const id = idOf(message)
  const headers = standardHeaders(message)
  const cancelled = new AbortController()
  if (id !== undefined && headers['mcp-method'] !== undefined) gateway.underWay.set(id, cancelled)
  gateway.underWay.get(cancelledBy(message))?.abort()
  try {
    const { response, heard } = await sendAgain(gateway, Buffer.from(line), {
      headers,
      signal: cancelled.signal,
    })
    if (isInitialize(message)) gateway.session = response.headers.get(SESSION)
    if (response.headers.get('content-type')?.startsWith('text/event-stream') === true)
      return await writeEvents(response, heard)
    const text = await response.text()
    if (id === undefined) return
    const answer = parsed(text)
    if (response.status === 200) tell(answer)
    // What is refused before a server has it is of no id.
    else if (isRpcError(answer)) tell({ ...answer, id })
    else tell(failed(id, codes.gateway, `The gateway answered ${response.status}: ${text.slice(0, 2000)}`))
  } catch (error) {
    if (id === undefined || cancelled.signal.aborted) return
    const why = `The gateway at ${gateway.endpoint.origin} cannot be reached: ${rootCause(error)}`
    tell(failed(id, codes.gateway, why))
  } finally {
    if (gateway.underWay.get(id) === cancelled) gateway.underWay.delete(id)
  }
}

/** Sends a message. A session that has ended is not needed: the gateway serves its key without one. */
async function sendAgain(gateway: Gateway, body: Buffer, how: Sending) {
  const { session } = gateway
  const sent = await send(gateway, 'POST', body, how)
  if (sent.response.status !== 404 || session === null) return sent
  await sent.response.body?.cancel()
  if (gateway.session === session) gateway.session = null
  return send(gateway, 'POST', body, how)
}

/** Sends a request, signed. @returns beside the response what is to be called whenever the gateway is heard of. */
async function send(
  { endpoint, key, session }: Gateway,
  method: 'POST' | 'DELETE',
  body: Buffer | null,
  { headers = {}, signal }: Partial<Sending> = {},
) {
  const signed = await signRequest(key, {
    origin: endpoint.origin,
    method,
    target: endpoint.pathname,
    body,
    at: systemClock(),
  })
  const silent = new AbortController()
  const timer = setTimeout(() => silent.abort(new Error('it does not answer')), SILENT_MS)
  // Alone it keeps no process alive.
  timer.unref()
  const response = await fetch(endpoint, {
    method,
    headers: {
      ...headers,
      ...signed,
      ...(session === null ? {} : { [SESSION]: session }),
      ...(body === null ? {} : { 'content-type': 'application/json' }),
      accept: 'application/json, text/event-stream',
    },
    body,
    signal: signal === undefined ? silent.signal : AbortSignal.any([silent.signal, signal]),
  })
  return { response, heard: () => timer.refresh() }
}

/** Writes the messages of a stream as lines, as they come. Each is one line of data: JSON has no other. */
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

function tell(message: unknown): void {
  process.stdout.write(`${JSON.stringify(message)}\n`)
}

function parsed(line: string): unknown {
  try {
    return JSON.parse(line)
  } catch {
    return undefined
  }
}

/** The id of a request; undefined for what is never answered: a notification, and an answer. */
function idOf(message: object): Id | undefined {
  const isAnswer = !('method' in message) && ('result' in message || 'error' in message)
  if (isAnswer || !('id' in message)) return undefined
  return typeof message.id === 'string' || typeof message.id === 'number' ? message.id : null
}

function isRpcError(answer: unknown): answer is object {
  return typeof answer === 'object' && answer !== null && 'jsonrpc' in answer && 'error' in answer
}

/** The id of the request that a message cancels. */
function cancelledBy(message: object): unknown {
  if (!('method' in message) || message.method !== 'notifications/cancelled') return undefined
  if (!('params' in message) || typeof message.params !== 'object' || message.params === null)
    return undefined
  return 'requestId' in message.params ? message.params.requestId : undefined
}

function isInitialize(message: object): boolean {
  return 'method' in message && message.method === 'initialize'
}

function failed(id: Id, code: number, message: string): unknown {
  return { jsonrpc: '2.0', id, error: { code, message } }
}
