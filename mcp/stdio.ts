/**
 * The MCP server for a local agent: reads JSON-RPC from standard input and passes it to a gateway's `/mcp`, each request
 * signed with the agent's own key. Nothing but the key file and the URL is needed.
 */
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js'
import type { JSONRPCMessage } from '@modelcontextprotocol/sdk/types.js'
import { systemClock } from '../src/clock.ts'
import { type SigningKey, signRequest } from '../src/identity/sign-request.ts'

/** Longer than the gateway ever takes for a call. */
const TIMEOUT_MS = 60_000

/** Serves until standard input ends. @param url of the gateway, such as `http://127.0.0.1:8787`. */
export async function serveStdio({ url, key }: { url: string; key: SigningKey }): Promise<void> {
  const endpoint = new URL('/mcp', url)
  const transport = new StdioServerTransport()
  const underWay = new Set<Promise<void>>()
  transport.onmessage = (message) => {
    const passing = pass(message).finally(() => underWay.delete(passing))
    underWay.add(passing)
  }
  const pass = async (message: JSONRPCMessage): Promise<void> => {
    const answer = await ask(endpoint, key, message)
    if (answer !== null) await transport.send(answer)
  }
  await transport.start()
  await new Promise<void>((resolve) => process.stdin.once('end', resolve).once('close', resolve))
  await Promise.allSettled(underWay)
}

/** What the gateway answers to a message; null where it needs no answer. */
async function ask(endpoint: URL, key: SigningKey, message: JSONRPCMessage): Promise<JSONRPCMessage | null> {
  const id = 'id' in message ? message.id : undefined
  try {
    const body = Buffer.from(JSON.stringify(message))
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
    const text = await response.text()
    if (id === undefined) return null
    if (response.ok) return JSON.parse(text)
    return failed(id, `The gateway answered ${response.status}: ${text.slice(0, 2000)}`)
  } catch (error) {
    if (id === undefined) return null
    const why =
      error instanceof Error
        ? error.cause instanceof Error
          ? error.cause.message
          : error.message
        : String(error)
    return failed(id, `The gateway at ${endpoint.origin} cannot be reached: ${why}`)
  }
}

function failed(id: string | number | undefined, message: string): JSONRPCMessage {
  return { jsonrpc: '2.0', id: id ?? 0, error: { code: -32000, message } }
}
