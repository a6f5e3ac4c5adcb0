import type { Log } from '../../base/log.ts'
import { Failure } from '../../failures/failure.ts'

/** How long a person is told to wait where the provider does not say, in seconds. */
const RETRY_SECONDS = 60

/**
 * The failure of a message that was not taken, the same for every destination. The operator reads why in the log.
 * @param reason codes only: the provider's words may repeat the destination.
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
