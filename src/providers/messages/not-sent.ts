import type { Log } from '../../core/base/log.ts'
import { Failure } from '../../core/failures/failure.ts'

/** Default retry delay in seconds, when the provider states none. */
const RETRY_SECONDS = 60

/**
 * Builds the failure of a rejected message, the same for every destination; the reason is only logged.
 * @param reason error codes only, because the provider's message may contain the destination.
 * @param retryAfter whole seconds.
 */
export function messageNotSent(
  log: Log,
  provider: string,
  reason: string,
  retryAfter = RETRY_SECONDS,
): Failure {
  log.warn({ provider, reason }, 'a message was not sent')
  return new Failure('provider_unavailable', 'The message could not be sent.', {
    retryAfter,
    hint: `Ask for a new code in ${retryAfter} s.`,
  })
}
