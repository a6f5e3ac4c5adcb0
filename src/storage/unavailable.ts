/** The one place that tells a database that cannot be reached, or is too busy, from a statement that is wrong. */
import { Failure } from '../failures/failure.ts'

/** SQLSTATEs by which the server takes a whole transaction back so that others can go on: deadlock, serialization. */
const CONFLICT_STATES = ['40P01', '40001']

/** SQLSTATEs after which the same call may succeed: lost or refused connections, full servers and disks, timeouts, conflicts. */
const RETRIABLE_STATES = new Set([
  ...['53100', '53200', '53300', '55P03', '57014', '57P01', '57P02', '57P03', '57P05', '25P03'],
  ...CONFLICT_STATES,
])

const NETWORK_CODES = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EPIPE',
  'ETIMEDOUT',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ENOENT',
])

/** What `pg` says without a code when a connection ends, cannot be had in time, or is silent. */
const LOST =
  /^(Connection terminated|Client has encountered a connection error|Client was closed|timeout expired|timeout exceeded when trying to connect|Query read timeout|Cannot use a pool after calling end)/

/** Whether the session that threw this is lost: the server ended it, or nobody knows what it is doing. */
export function isConnectionLost(error: unknown): boolean {
  const code = codeOf(error)
  if (code !== undefined)
    return NETWORK_CODES.has(code) || code.startsWith('08') || code.startsWith('57P') || code === '25P03'
  return error instanceof Error && LOST.test(error.message)
}

/** Whether the server took the transaction back for another's sake: nothing of it was done, and it can run again at once. */
export function isConflict(error: unknown): boolean {
  return error instanceof Failure && CONFLICT_STATES.includes(codeOf(error.cause) ?? '')
}

/** The error itself, or Failure `provider_unavailable` where a later try may succeed. The cause is kept. */
export function asUnavailable(error: unknown): unknown {
  const retriable = isConnectionLost(error) || RETRIABLE_STATES.has(codeOf(error) ?? '')
  if (!retriable) return error
  return new Failure(
    'provider_unavailable',
    'The database cannot be reached or is too busy.',
    { retryAfter: 1, hint: 'Repeat the request with the same idempotency key.' },
    { cause: error },
  )
}

function codeOf(error: unknown): string | undefined {
  // A connection tried on several addresses fails with one error for each of them.
  if (error instanceof AggregateError && error.errors.length > 0) return codeOf(error.errors[0])
  if (!(error instanceof Error) || !('code' in error)) return undefined
  return typeof error.code === 'string' ? error.code : undefined
}
