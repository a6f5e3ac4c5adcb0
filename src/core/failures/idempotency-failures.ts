/** Errors for idempotency-key conflicts. */
import { Failure } from './failure.ts'

/** The first call is still running. @param retryAfter whole seconds. */
export function idempotencyInProgress(retryAfter = 1): Failure {
  return new Failure(
    'idempotency_in_progress',
    'The first call with this idempotency key is still running.',
    {
      retryAfter,
      hint:
        retryAfter === 1
          ? 'Repeat the same request after a second to get its response.'
          : `Repeat the same request after ${retryAfter} s: if the first call was interrupted, the key is free by then.`,
    },
  )
}

/** The key was used with a different request. */
export function idempotencyKeyReused(): Failure {
  return new Failure('idempotency_key_reused', 'This idempotency key was used with a different request.', {
    hint: 'Use a new idempotency key for a new request.',
  })
}
