/** Requires a recent second factor or sign-in for privileged operations. @see https://www.rfc-editor.org/rfc/rfc9470 */
import { judgeRecentProof, judgeStepUp, STEP_UP_SECONDS } from '../../../policies/step-up.ts'
import { Failure } from '../../core/failures/failure.ts'
import { type Context, requirePerson } from '../context.ts'

/** Maximum age of a second factor in seconds: `max_age` of the challenge. */
export const stepUpMaxAge = STEP_UP_SECONDS

/** @throws Failure `step_up_required`, `mfa_enrollment_required`, `unauthenticated`. */
export function requireStepUp(context: Pick<Context, 'principal' | 'settings' | 'now'>): void {
  const { account, session } = requirePerson(context)
  const verdict = judgeStepUp({
    mode: context.settings.mode,
    mfaEnrolled: account.mfaEnrolled,
    steppedUpAt: session.steppedUpAt,
    now: context.now,
  })
  if (verdict === 'stale')
    throw new Failure(
      'step_up_required',
      'This operation requires a second factor from the last five minutes.',
      {
        hint: 'POST /api/security/mfa {"action":"verify","code":"…"} on this session, then repeat the request.',
      },
    )
  if (verdict === 'enroll')
    throw new Failure(
      'mfa_enrollment_required',
      'This operation requires a second factor, and none is enrolled.',
      {
        hint: 'POST /api/security/mfa {"action":"enroll"}, then {"action":"activate","code":"…"}.',
      },
    )
}

/**
 * For operations that could lock the owner out: requires the second factor if one is enrolled, otherwise, in
 * production, a sign-in within five minutes. @throws Failure `step_up_required`, `unauthenticated`.
 */
export function requireRecentProof(context: Pick<Context, 'principal' | 'settings' | 'now'>): void {
  const { account, session } = requirePerson(context)
  if (account.mfaEnrolled) {
    requireStepUp(context)
    return
  }
  const facts = {
    mode: context.settings.mode,
    mfaEnrolled: false,
    steppedUpAt: session.steppedUpAt,
    signedInAt: session.isDevice ? null : session.createdAt,
    now: context.now,
  }
  if (judgeRecentProof(facts) === 'stale')
    throw new Failure('step_up_required', 'This operation requires a sign-in from the last five minutes.', {
      hint: 'Sign in again, or enroll a second factor (POST /api/security/mfa), then repeat the request.',
    })
}

/**
 * Requires a step-up of a person for a change that loosens. @param loosened what it loosens, by name.
 * @throws Failure `step_up_required`, `mfa_enrollment_required`.
 */
export function requireProofToLoosen(
  context: Pick<Context, 'principal' | 'settings' | 'now'>,
  loosened: readonly string[],
): void {
  if (context.principal.kind === 'session' && loosened.length > 0) requireStepUp(context)
}
