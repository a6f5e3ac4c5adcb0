/** Classifies connection errors by whether the remote side may have acted on the request. */
import { type Cancel, timers } from '../../../core/base/timers.ts'
import { Failure } from '../../../core/failures/failure.ts'

/** The request was not delivered. */
const refusals: ReadonlySet<string> = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
])

/** The connection was lost or timed out; the request may have been delivered. */
const losses: ReadonlySet<string> = new Set([
  'HttpRequestError',
  'TimeoutError',
  'AbortError',
  'WebSocketRequestError',
  'SocketClosedError',
  'FacilitatorTimeoutError',
  'ECONNRESET',
  'EPIPE',
  'ETIMEDOUT',
  'UND_ERR_SOCKET',
  'UND_ERR_HEADERS_TIMEOUT',
  'UND_ERR_BODY_TIMEOUT',
  'UND_ERR_CONNECT_TIMEOUT',
])

/** True if the request certainly was not delivered. */
export function isRefusedConnection(error: unknown): boolean {
  return listMarks(error).some((mark) => refusals.has(mark))
}

/** True for any connection error, whether or not the request was delivered. */
export function isConnectionError(error: unknown): boolean {
  if (error instanceof Failure) return true
  return listMarks(error).some((mark) => refusals.has(mark) || losses.has(mark))
}

/** Names and codes of an error and its causes. */
function listMarks(error: unknown): string[] {
  const marks: string[] = []
  for (let cause = error, depth = 0; cause instanceof Error && depth < 8; cause = cause.cause, depth += 1) {
    marks.push(cause.name)
    if ('code' in cause && typeof cause.code === 'string') marks.push(cause.code)
  }
  return marks
}

/** Rejects with a `TimeoutError` after the time limit. The work itself continues. */
export async function withTimeLimit<Result>(timeoutMs: number, work: Promise<Result>): Promise<Result> {
  let cancel: Cancel | undefined
  const tooLate = new Promise<never>((_resolve, reject) => {
    cancel = timers.after(timeoutMs, () =>
      reject(new DOMException(`no answer in ${timeoutMs} ms`, 'TimeoutError')),
    )
  })
  try {
    return await Promise.race([work, tooLate])
  } finally {
    cancel?.()
  }
}
