/** Distinguishes an unreachable or overloaded database from an invalid statement. */
import { Failure } from '../core/failures/failure.ts'

/** SQLSTATEs of transactions rolled back for concurrency: deadlock, serialization. */
const CONFLICT_STATES = ['40P01', '40001']

/**
 * SQLSTATEs after which a retry may succeed: lost or refused connections, full servers and disks, timeouts,
 * conflicts.
 */
const RETRIABLE_STATES = new Set([
  ...['53100', '53200', '53300', '55P03', '57014', '57P01', '57P02', '57P03', '57P05', '25P03', '25006'],
  ...CONFLICT_STATES,
])

/** SQLSTATE of a write on a standby. Nothing was done, so another host may do it. */
const READ_ONLY_STATE = '25006'

/** Codes of the system, of name resolution and of TLS, where an answer may be lost. No SQLSTATE starts with E. */
const SYSTEM_CODE = /^(E(?!RR_)[A-Z0-9_]+|ERR_(SSL|TLS|STREAM|SOCKET)_\w+)$/

/** Messages of `pg` errors without a code: connections that end, time out or are silent. */
const LOST =
  /^(Connection terminated|Client has encountered a connection error|Client was closed|timeout expired|timeout exceeded when trying to connect|Query read timeout|Cannot use a pool after calling end)/

/** True if the session is lost: the server ended it, or its state is unknown. */
export function isConnectionLost(error: unknown): boolean {
  const code = findCode(error)
  if (code !== undefined)
    return SYSTEM_CODE.test(code) || code.startsWith('08') || code.startsWith('57P') || code === '25P03'
  return error instanceof Error && LOST.test(error.message)
}

/** True if the server is a standby, or was demoted: it accepts no writes. */
export function isReadOnly(error: unknown): boolean {
  return findCode(error) === READ_ONLY_STATE
}

/** True if the server rolled back the transaction because of a concurrent one; it can be retried immediately. */
export function isConflict(error: unknown): boolean {
  return error instanceof Failure && CONFLICT_STATES.includes(findCode(error.cause) ?? '')
}

/** True if a statement gave up waiting for a lock. */
export function isLockTimeout(error: unknown): boolean {
  return findCode(error instanceof Failure ? error.cause : error) === '55P03'
}

/** Converts retriable errors to Failure `provider_unavailable` with the cause; returns others unchanged. */
export function asUnavailable(error: unknown): unknown {
  const retriable = isConnectionLost(error) || RETRIABLE_STATES.has(findCode(error) ?? '')
  if (!retriable) return error
  return new Failure(
    'provider_unavailable',
    'The database is unreachable or overloaded.',
    { retryAfter: 1, hint: 'Repeat the request with the same idempotency key.' },
    { cause: error },
  )
}

function findCode(error: unknown): string | undefined {
  // A connection attempt to several addresses fails with one error per address.
  if (error instanceof AggregateError && error.errors.length > 0) return findCode(error.errors[0])
  if (!(error instanceof Error) || !('code' in error)) return undefined
  return typeof error.code === 'string' ? error.code : undefined
}
