/** What a call is told whose idempotency key another call has. */
import { Failure } from './failure.ts'

/** The first call has not come to an answer yet. */
export function idempotencyInProgress(): Failure {
  return new Failure(
    'idempotency_in_progress',
    'The first call with this idempotency key is still running.',
    {
      retryAfter: 1,
      hint: 'Repeat the same request after a second to get its answer.',
    },
  )
}

/** The first call was another request. */
export function idempotencyKeyReused(): Failure {
  return new Failure('idempotency_key_reused', 'This idempotency key was used with another request.', {
    hint: 'Use a new idempotency key for a new request.',
  })
}
