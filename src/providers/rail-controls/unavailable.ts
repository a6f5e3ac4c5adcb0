import { Failure } from '../../core/failures/failure.ts'

/** Default retry delay in seconds. */
const RETRY_SECONDS = 5

/** Details of an unreadable control. @property retryAfter whole seconds, if the control plane states them. */
interface Circumstances {
  readonly cause?: unknown
  readonly retryAfter?: number | undefined
}

/** Builds the failure of an unreadable control. Spec 7 sets the reason `plan_limit` for every cause. */
export function controlsUnavailable(
  what: string,
  { cause, retryAfter = RETRY_SECONDS }: Circumstances,
): Failure {
  return new Failure(
    'controls_unavailable',
    `Rail controls cannot be read: ${what}. Nothing was done.`,
    {
      reason: 'plan_limit',
      retryAfter,
      hint: 'The state of the rail is unknown. Wait, then retry; do not assume that it is on.',
    },
    { cause },
  )
}
