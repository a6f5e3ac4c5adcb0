/** Whether this person may do something privileged now. @see https://www.rfc-editor.org/rfc/rfc9470 */
import { judgeStepUp, STEP_UP_SECONDS } from '../../../policies/step-up.ts'
import { Failure } from '../../failure.ts'
import { type Context, personOf } from '../context.ts'

/** How old a second factor may be, in seconds: `max_age` of the challenge. */
export const stepUpMaxAge = STEP_UP_SECONDS

/** @throws Failure `step_up_required`, `mfa_enrollment_required`, `unauthenticated`. */
export function requireStepUp(context: Pick<Context, 'principal' | 'settings' | 'now'>): void {
  const { account, session } = personOf(context)
  const verdict = judgeStepUp({
    mode: context.settings.mode,
    mfaEnrolled: account.mfaEnrolled,
    steppedUpAt: session.steppedUpAt,
    now: context.now,
  })
  if (verdict === 'stale')
    throw new Failure('step_up_required', 'This operation needs a second factor of the last five minutes.', {
      hint: 'POST /api/security/mfa {"action":"verify","code":"…"} on this session, then repeat the request.',
    })
  if (verdict === 'enroll')
    throw new Failure(
      'mfa_enrollment_required',
      'This operation needs a second factor, and none is enrolled.',
      {
        hint: 'POST /api/security/mfa {"action":"enroll"}, then {"action":"activate","code":"…"}.',
      },
    )
}

/** The same for an account that has a second factor; one without it passes. @throws Failure `step_up_required`. */
export function requireStepUpIfEnrolled(context: Pick<Context, 'principal' | 'settings' | 'now'>): void {
  if (personOf(context).account.mfaEnrolled) requireStepUp(context)
}
