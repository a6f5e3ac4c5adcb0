/** Step-up: checks whether a person has shown a second factor recently enough for a privileged operation. */

/** How long a second factor is valid, in seconds. */
export const STEP_UP_SECONDS = 5 * 60

/** Facts of a session. @property steppedUpAt when a second factor was last shown on it. */
export interface StepUpFacts {
  readonly mode: 'sandbox' | 'production'
  readonly mfaEnrolled: boolean
  readonly steppedUpAt: Date | null
  readonly now: Date
}

/**
 * Checks for a recent proof of identity: the second factor if enrolled, otherwise in production a recent sign-in. A
 * stolen old session must not be able to lock the owner out. @param facts `signedInAt` is null for a session that was
 * opened without a proof of identity.
 */
export function judgeRecentProof(
  facts: StepUpFacts & { readonly signedInAt: Date | null },
): 'fresh' | 'stale' {
  if (facts.mfaEnrolled) return judgeStepUp(facts) === 'fresh' ? 'fresh' : 'stale'
  if (facts.mode === 'sandbox') return 'fresh'
  if (facts.signedInAt === null) return 'stale'
  const age = facts.now.getTime() - facts.signedInAt.getTime()
  return age < STEP_UP_SECONDS * 1000 ? 'fresh' : 'stale'
}

/** `enroll`: no second factor is enrolled, and production requires one. */
export function judgeStepUp({
  mode,
  mfaEnrolled,
  steppedUpAt,
  now,
}: StepUpFacts): 'fresh' | 'stale' | 'enroll' {
  if (!mfaEnrolled) return mode === 'sandbox' ? 'fresh' : 'enroll'
  if (steppedUpAt === null) return 'stale'
  const age = now.getTime() - steppedUpAt.getTime()
  return age >= 0 && age < STEP_UP_SECONDS * 1000 ? 'fresh' : 'stale'
}
