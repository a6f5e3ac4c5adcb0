/**
 * One POST of a client up to 2025-11-25, as a transport of the SDK's server. The response is a JSON body, or an event
 * stream if a message precedes the result. The client answers elicitations with a separate POST.
 * @see https://modelcontextprotocol.io/specification/2025-11-25/basic/transports#sending-messages-to-the-server
 */
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js'
import type {
  JSONRPCErrorResponse,
  JSONRPCMessage,
  JSONRPCNotification,
  JSONRPCRequest,
} from '@modelcontextprotocol/sdk/types.js'
import { openEventStream } from './event-stream.ts'

export interface ElicitationClient {
  /** Opens an elicitation of a call. @returns the id that the client sees. */
  open(requestId: string | number): Promise<string>
  /** @returns undefined if the signal aborted the wait. */
  answerTo(id: string, signal: AbortSignal): Promise<unknown>
  /** Waits until the client cancels the call at another instance. @returns false if the signal aborted the wait. */
  awaitCancellation(id: string, signal: AbortSignal): Promise<boolean>
  /** Forgets an elicitation. Never throws. */
  close(id: string): Promise<void>
}

export interface Exchange {
  readonly transport: Transport
  readonly response: Promise<Response>
  /** Resolves once the response is sent or no longer awaited. */
  readonly closed: Promise<void>
  /** Cancels the request: notifies its handlers and sends no result. */
  cancel(): void
}

interface Wait {
  readonly id: string
  readonly end: () => void
}

/**
 * @param elicitation null if the client cannot be asked. @param requestId id of the client's request.
 * @param headers response headers, such as the session id.
 */
export function openExchange(
  elicitation: ElicitationClient | null,
  { requestId, headers }: { requestId: string | number; headers: Readonly<Record<string, string>> },
): Exchange {
  const { promise: response, resolve: respond } = createPromise<Response>()
  const { promise: closed, resolve: end } = createPromise<void>()
  const waits = new Map<string | number, Wait>()
  const ended = new AbortController()
  let stream: ReturnType<typeof openEventStream> | null = null
  let isClosed = false
  let hasAsked = false

  const write = (message: unknown) => {
    if (isClosed) return
    if (stream === null) {
      stream = openEventStream({ headers, onCancel: () => void transport.close() })
      respond(stream.response)
    }
    stream.write(message)
  }
  const finish = async (message: JSONRPCMessage) => {
    if (stream !== null) {
      stream.write(message)
      return transport.close()
    }
    respond(Response.json(message, { headers }))
    isClosed = true
    // Closing aborts signals and builds errors for waits. A call that asked nothing has none.
    return hasAsked ? transport.close() : end()
  }
  const put = async (question: JSONRPCRequest, elicitation: ElicitationClient) => {
    const id = await elicitation.open(requestId)
    void closed.then(() => elicitation.close(id))
    void elicitation.awaitCancellation(id, ended.signal).then((isCancelled) => isCancelled && cancel())
    const answered = new AbortController()
    waits.set(question.id, { id, end: () => answered.abort() })
    write({ ...question, id })
    const answer = await elicitation.answerTo(id, AbortSignal.any([answered.signal, ended.signal]))
    waits.delete(question.id)
    if (answered.signal.aborted || ended.signal.aborted) return
    // The server numbers its elicitations per call; the client's answer has our id and was validated on receipt.
    const reply = (answer ?? unanswered) as Pick<JSONRPCErrorResponse, 'jsonrpc' | 'error'>
    transport.onmessage?.({ ...reply, id: question.id })
  }

  const transport: Transport = {
    start: async () => {},
    send: async (message) => {
      if (!('method' in message)) return finish(message)
      if (!('id' in message)) return write(cancelledElicitation(message, waits) ?? message)
      if (elicitation === null) throw new Error('elicitation requires a session')
      hasAsked = true
      put(message, elicitation).catch((error: unknown) => {
        transport.onerror?.(asError(error))
        transport.onmessage?.({ ...unanswered, id: message.id })
      })
    },
    close: async () => {
      isClosed = true
      ended.abort()
      stream?.end()
      end()
      transport.onclose?.()
    },
  }
  const cancel = () => {
    transport.onmessage?.({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId } })
    respond(new Response(null, { status: 202, headers }))
    void transport.close()
  }
  return { transport, response, closed, cancel }
}

/** Sent to the server when no answer will arrive: the session has expired or cannot be read. */
const unanswered = { jsonrpc: '2.0', error: { code: -32000, message: 'The client did not answer.' } } as const

/** Translates the cancellation of an elicitation to the id that the client knows, and stops waiting for it. */
function cancelledElicitation(
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
function createPromise<Value>() {
  let resolve: (value: Value) => void = () => {}
  const promise = new Promise<Value>((settle) => {
    resolve = settle
  })
  return { promise, resolve }
}
