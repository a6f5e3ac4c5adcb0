/** Whether a person has shown a second factor lately enough for a privileged operation. Contract section 3. */

/** How long a second factor holds, in seconds. */
export const STEP_UP_SECONDS = 5 * 60

/** What is judged. @property steppedUpAt when a second factor was last shown on this session. */
export interface StepUpFacts {
  readonly mode: 'sandbox' | 'production'
  readonly mfaEnrolled: boolean
  readonly steppedUpAt: Date | null
  readonly now: Date
}

/**
 * Whether a person has lately proved to be who they are: by the second factor where there is one, else in production by
 * having signed in. What could keep the owner out must not be within reach of an old session that was stolen.
 */
export function judgeRecentProof(facts: StepUpFacts & { readonly signedInAt: Date }): 'fresh' | 'stale' {
  if (facts.mfaEnrolled) return judgeStepUp(facts) === 'fresh' ? 'fresh' : 'stale'
  const age = facts.now.getTime() - facts.signedInAt.getTime()
  return facts.mode === 'sandbox' || age < STEP_UP_SECONDS * 1000 ? 'fresh' : 'stale'
}

/** `enroll`: there is no second factor to show yet, and production insists on one. */
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
