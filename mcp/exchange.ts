/**
 * One POST of a client up to 2025-11-25, as a transport of the SDK's server. Its answer is a JSON body; where something
 * goes out before it, the response becomes an event stream. What the client is asked there, it answers by a POST of its
 * own. @see https://modelcontextprotocol.io/specification/2025-11-25/basic/transports#sending-messages-to-the-server
 */
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js'
import type {
  JSONRPCErrorResponse,
  JSONRPCMessage,
  JSONRPCNotification,
  JSONRPCRequest,
} from '@modelcontextprotocol/sdk/types.js'
import { openEventStream } from './event-stream.ts'

/** A client that can be asked. */
export interface ElicitationClient {
  /** Opens a question. @returns the id that the client sees. */
  open(): Promise<string>
  /** @returns undefined where the signal ended the wait. */
  answerTo(id: string, signal: AbortSignal): Promise<unknown>
}

/** One request and its response. */
export interface Exchange {
  readonly transport: Transport
  readonly response: Promise<Response>
  /** Ends once the answer is given, or nobody waits for it any more. */
  readonly closed: Promise<void>
  /** The client does not want its answer any more: whoever works on it is told, and nothing is sent. */
  cancel(id: string | number): void
}

interface Wait {
  readonly id: string
  readonly end: () => void
}

/** Opens an exchange. @param asking null: nobody can be asked. @param headers of the response, such as the session's id. */
export function openExchange(
  asking: ElicitationClient | null,
  headers: Readonly<Record<string, string>>,
): Exchange {
  const { promise: response, resolve: respond } = promiseOf<Response>()
  const { promise: closed, resolve: end } = promiseOf<void>()
  const waits = new Map<string | number, Wait>()
  let stream: ReturnType<typeof openEventStream> | null = null
  let isClosed = false

  const write = (message: unknown) => {
    if (isClosed) return
    if (stream === null) {
      stream = openEventStream({ headers, onCancel: () => void transport.close() })
      respond(stream.response)
    }
    stream.write(message)
  }
  const finish = (message: JSONRPCMessage) => {
    if (stream === null) respond(Response.json(message, { headers }))
    else stream.write(message)
    return transport.close()
  }
  const put = async (question: JSONRPCRequest, asking: ElicitationClient) => {
    const id = await asking.open()
    const ended = new AbortController()
    waits.set(question.id, { id, end: () => ended.abort() })
    write({ ...question, id })
    const answer = await asking.answerTo(id, ended.signal)
    waits.delete(question.id)
    if (ended.signal.aborted) return
    // The server numbers its questions anew for each call; the client's answer names ours, and was checked as it came in.
    const told = (answer ?? unanswered) as Pick<JSONRPCErrorResponse, 'jsonrpc' | 'error'>
    transport.onmessage?.({ ...told, id: question.id })
  }

  const transport: Transport = {
    start: async () => {},
    send: async (message) => {
      if (!('method' in message)) return finish(message)
      if (!('id' in message)) return write(withdrawn(message, waits) ?? message)
      if (asking === null) throw new Error('this client has no session to be asked in')
      put(message, asking).catch((error: unknown) => {
        transport.onerror?.(asError(error))
        transport.onmessage?.({ ...unanswered, id: message.id })
      })
    },
    close: async () => {
      isClosed = true
      for (const { end } of waits.values()) end()
      stream?.end()
      end()
      transport.onclose?.()
    },
  }
  const cancel = (requestId: string | number) => {
    transport.onmessage?.({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId } })
    respond(new Response(null, { status: 202, headers }))
    void transport.close()
  }
  return { transport, response, closed, cancel }
}

/** What the server is told where no answer will come: its session has ended, or cannot be read. */
const unanswered = { jsonrpc: '2.0', error: { code: -32000, message: 'Nobody answers.' } } as const

/** A question that is given up: nobody waits for its answer any more, and its client knows it by another id. */
function withdrawn(
  message: JSONRPCNotification,
  waits: ReadonlyMap<unknown, Wait>,
): JSONRPCNotification | undefined {
  if (message.method !== 'notifications/cancelled') return undefined
  const wait = waits.get(message.params?.requestId)
  wait?.end()
  return wait && { ...message, params: { ...message.params, requestId: wait.id } }
}

function asError(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error))
}

/** `Promise.withResolvers`, which Node 20 does not have. */
function promiseOf<Value>() {
  let resolve: (value: Value) => void = () => {}
  const promise = new Promise<Value>((settle) => {
    resolve = settle
  })
  return { promise, resolve }
}
