/** What a call is told whose idempotency key another call has. */
import { Failure } from './failure.ts'

/** Error for a call whose first attempt has not come to an answer yet. @param retryAfter whole seconds. */
export function idempotencyInProgress(retryAfter = 1): Failure {
  return new Failure(
    'idempotency_in_progress',
    'The first call with this idempotency key is still running.',
    {
      retryAfter,
      hint:
        retryAfter === 1
          ? 'Repeat the same request after a second to get its answer.'
          : `Repeat the same request after ${retryAfter} s: if the first call was cut off, the key is free then.`,
    },
  )
}

/** The first call was another request. */
export function idempotencyKeyReused(): Failure {
  return new Failure('idempotency_key_reused', 'This idempotency key was used with another request.', {
    hint: 'Use a new idempotency key for a new request.',
  })
}
