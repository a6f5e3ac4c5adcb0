import { setMaxListeners } from 'node:events'
import { timers } from './timers.ts'

/** Limits of a fetch. @property timeoutMs covers the body too. @property signal ends it earlier. */
export interface FetchLimits {
  readonly timeoutMs: number
  readonly maxBytes: number
  readonly signal?: AbortSignal | undefined
}

/**
 * Fetches a URL and its whole body as text. The limits are enforced here as well as by the request's signal: Node's fetch
 * references that signal weakly, so after a garbage collection an abort may never reach a waiting request.
 * @returns the text, or empty for a response outside 2xx whose body could not be read: its status says enough.
 * @throws Error when a limit is reached; its name is `TimeoutError` for the time.
 */
export async function fetchWithin(
  url: string | URL,
  init: Omit<RequestInit, 'signal'>,
  { timeoutMs, maxBytes, signal }: FetchLimits,
): Promise<{ readonly response: Response; readonly text: string }> {
  const ending = new AbortController()
  const stop = () => ending.abort(signal?.reason)
  const late = () =>
    ending.abort(new DOMException(`timeout: no whole answer in ${timeoutMs} ms`, 'TimeoutError'))
  const cancelTimeout = timers.after(timeoutMs, late)
  if (signal !== undefined) setMaxListeners(0, signal) // Many calls may share one.
  signal?.addEventListener('abort', stop, { once: true })
  if (signal?.aborted === true) stop()
  try {
    const response = await unlessAborted(ending.signal, fetch(url, { ...init, signal: ending.signal }))
    const text = await readText(response, maxBytes, ending.signal).catch((error: unknown) => {
      if (response.ok) throw error
      return ''
    })
    return { response, text }
  } finally {
    cancelTimeout()
    signal?.removeEventListener('abort', stop)
  }
}

function unlessAborted<Result>(signal: AbortSignal, work: Promise<Result>): Promise<Result> {
  return new Promise((resolve, reject) => {
    const fail = () => reject(signal.reason)
    if (signal.aborted) fail()
    signal.addEventListener('abort', fail, { once: true })
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', fail))
  })
}

async function readText(response: Response, maxBytes: number, signal: AbortSignal): Promise<string> {
  if (response.body === null) return ''
  const reader = response.body.getReader()
  const cancel = () => void reader.cancel().catch(() => {})
  signal.addEventListener('abort', cancel, { once: true })
  const parts: Uint8Array[] = []
  let bytes = 0
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (signal.aborted) throw signal.reason
      if (done) return Buffer.concat(parts).toString('utf8')
      bytes += value.byteLength
      if (bytes > maxBytes) throw new Error(`the answer is over ${maxBytes} bytes`)
      parts.push(value)
    }
  } finally {
    signal.removeEventListener('abort', cancel)
    cancel()
  }
}
