/** What an error says about whether the other side can have acted on a request. */
import { Failure } from '../failures/failure.ts'

/** Nothing arrived: there was nobody to talk to. */
const refusals: ReadonlySet<string> = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
])

/** The connection was lost or too slow: it may have arrived. */
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

/** Whether a request certainly did not reach the other side. */
export function isRefusedConnection(error: unknown): boolean {
  return marksOf(error).some((mark) => refusals.has(mark))
}

/** Whether the other side could not be reached, or not in time, whatever it then did. */
export function isConnectionTrouble(error: unknown): boolean {
  if (error instanceof Failure) return true
  return marksOf(error).some((mark) => refusals.has(mark) || losses.has(mark))
}

/** Names and codes of an error and of everything that caused it. */
function marksOf(error: unknown): string[] {
  const marks: string[] = []
  for (let cause = error, depth = 0; cause instanceof Error && depth < 8; cause = cause.cause, depth += 1) {
    marks.push(cause.name)
    if ('code' in cause && typeof cause.code === 'string') marks.push(cause.code)
  }
  return marks
}

/** The result, or an error named `TimeoutError` after a time. What was begun goes on. */
export async function withTimeLimit<Result>(timeoutMs: number, work: Promise<Result>): Promise<Result> {
  let timer: NodeJS.Timeout | undefined
  const tooLate = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(
      () => reject(new DOMException(`no answer in ${timeoutMs} ms`, 'TimeoutError')),
      timeoutMs,
    )
  })
  try {
    return await Promise.race([work, tooLate])
  } finally {
    clearTimeout(timer)
  }
}
