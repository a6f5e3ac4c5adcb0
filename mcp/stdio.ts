/**
 * The MCP server for a local agent: reads JSON-RPC from standard input and passes it to a gateway's `/mcp`, each request
 * signed with the agent's own key. Nothing but the key file and the URL is needed. A message is passed on as it was
 * written, byte for byte: reading its numbers here would round an amount before the gateway can judge it.
 */
import { createInterface } from 'node:readline'
import { systemClock } from '../src/clock.ts'
import { type SigningKey, signRequest } from '../src/identity/sign-request.ts'
import { rootCause } from '../src/root-cause.ts'

/** Longer than the gateway ever takes for a call. */
const TIMEOUT_MS = 60_000

/** The codes of JSON-RPC that this end gives. @see https://www.jsonrpc.org/specification#error_object */
const codes = { notJson: -32700, notARequest: -32600, gateway: -32000 } as const

type Id = string | number | null

/** Serves until standard input ends. @param url of the gateway, such as `http://127.0.0.1:8787`. */
export async function serveStdio({ url, key }: { url: string; key: SigningKey }): Promise<void> {
  const endpoint = new URL('/mcp', url)
  const underWay = new Set<Promise<void>>()
  const pass = async (line: string): Promise<void> => {
    const answer = await answerTo(line, endpoint, key)
    if (answer !== null) process.stdout.write(`${JSON.stringify(answer)}\n`)
  }
  for await (const line of createInterface({ input: process.stdin })) {
    if (line.trim() === '') continue
    const passing = pass(line).finally(() => underWay.delete(passing))
    underWay.add(passing)
  }
  await Promise.allSettled(underWay)
}

/** The answer to one line; null where it needs none. */
async function answerTo(line: string, endpoint: URL, key: SigningKey): Promise<unknown> {
  const message = parsed(line)
  if (message === undefined) return failed(null, codes.notJson, 'This is not JSON.')
  if (typeof message !== 'object' || message === null || Array.isArray(message))
    return failed(null, codes.notARequest, 'This is not a JSON-RPC message: one object a line.')
  const id = idOf(message)
  try {
    const { status, text } = await ask(endpoint, key, Buffer.from(line))
    if (id === undefined) return null
    if (status === 200) return JSON.parse(text)
    return failed(id, codes.gateway, `The gateway answered ${status}: ${text.slice(0, 2000)}`)
  } catch (error) {
    if (id === undefined) return null
    return failed(
      id,
      codes.gateway,
      `The gateway at ${endpoint.origin} cannot be reached: ${rootCause(error)}`,
    )
  }
}

/** Sends a message, signed. */
async function ask(endpoint: URL, key: SigningKey, body: Buffer): Promise<{ status: number; text: string }> {
  const signed = await signRequest(key, {
    origin: endpoint.origin,
    method: 'POST',
    target: endpoint.pathname,
    body,
    at: systemClock(),
  })
  const response = await fetch(endpoint, {
    method: 'POST',
    headers: {
      ...signed,
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
    },
    body,
    signal: AbortSignal.timeout(TIMEOUT_MS),
  })
  return { status: response.status, text: await response.text() }
}

function parsed(line: string): unknown {
  try {
    return JSON.parse(line)
  } catch {
    return undefined
  }
}

/** The id of a request; undefined for a notification, which is never answered. */
function idOf(message: object): Id | undefined {
  if (!('id' in message)) return undefined
  return typeof message.id === 'string' || typeof message.id === 'number' ? message.id : null
}

function failed(id: Id, code: number, message: string): unknown {
  return { jsonrpc: '2.0', id, error: { code, message } }
}
