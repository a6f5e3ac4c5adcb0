/** An event stream of JSON-RPC messages. @see https://html.spec.whatwg.org/multipage/server-sent-events.html */
import { timers } from '../src/core/base/timers.ts'

/** Keep-alive interval, so that proxies do not close an idle stream. */
const QUIET_MS = 15_000

export interface EventStream {
  readonly response: Response
  write(message: unknown): void
  /** Closes the stream. Idempotent. */
  end(): void
}

/** @param onCancel called when the client disconnects. */
export function openEventStream({
  headers,
  onCancel,
}: {
  headers: Readonly<Record<string, string>>
  onCancel: () => void
}): EventStream {
  const encoder = new TextEncoder()
  let controller: ReadableStreamDefaultController<Uint8Array> | null = null
  const endQuiet = timers.every(QUIET_MS, () => put(': quiet\n\n'))
  const stop = () => {
    endQuiet()
    controller = null
  }
  const put = (text: string) => controller?.enqueue(encoder.encode(text))
  const body = new ReadableStream<Uint8Array>({
    start: (opened) => {
      controller = opened
    },
    cancel: () => {
      stop()
      onCancel()
    },
  })
  return {
    response: new Response(body, {
      headers: { 'content-type': 'text/event-stream', 'x-accel-buffering': 'no', ...headers },
    }),
    write: (message) => put(`event: message\ndata: ${JSON.stringify(message)}\n\n`),
    end: () => {
      const open = controller
      stop()
      open?.close()
    },
  }
}
