import { Failure } from '../../failures/failure.ts'

/** Seconds that clients are asked to wait where nobody said how long. */
const RETRY_SECONDS = 5

/** Why a control cannot be read. @property retryAfter whole seconds, where the control plane said so. */
interface Circumstances {
  readonly cause?: unknown
  readonly retryAfter?: number | undefined
}

/** The failure of a control that cannot be read. Spec 7 gives it the reason `plan_limit`, whatever the cause. */
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
      hint: 'Whether the rail is on is not known. Wait, then ask again; do not assume that it is.',
    },
    { cause },
  )
}
