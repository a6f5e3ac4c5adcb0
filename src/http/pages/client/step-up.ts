/** The second factor: asked for where an attempt needs one, which is made again once it was shown. */
import { type Answer, ask, isRefusal } from './api.ts'
import { attempt, onRefusal, onSubmit, type Work } from './attempts.ts'
import { fieldOf, find, formOf, show, tell } from './elements.ts'
import { readAccount } from './session.ts'

/** The attempt that a second factor was missing for: kept until a code is taken. */
let refused: Work | null = null

/** Makes the forms work. */
export function setUpStepUp(): void {
  onRefusal('step_up_required', askForSecondFactor)
  onSubmit(formOf('step-up-app'), (form) => confirm(form, { code: fieldOf(form, 'code') }))
  onSubmit(formOf('step-up-recovery'), (form) =>
    confirm(form, { recoveryCode: fieldOf(form, 'recoveryCode') }),
  )
}

/** Forgets what was refused: whoever signs in next has not asked for it. */
export function forgetStepUp(): void {
  refused = null
  for (const id of ['step-up-app', 'step-up-recovery']) formOf(id)?.reset()
  show('step-up', false)
}

/** Without a second factor a fresh sign-in is what is asked for, and the refusal has said so. */
async function askForSecondFactor(work: Work, words: string): Promise<void> {
  const account = await readAccount().catch((): Answer => ({ mfaEnrolled: false }))
  if (account.mfaEnrolled !== true) return
  refused = work
  show('step-up', true)
  tell(words, 'error')
  find('step-up-code', HTMLInputElement)?.focus()
}

async function confirm(form: HTMLFormElement, shown: Answer): Promise<void> {
  try {
    await ask('POST', '/api/security/mfa', { action: 'verify', ...shown })
  } catch (error) {
    form.querySelector('input')?.select()
    // A wrong code is refused as a missing one is: this attempt must not take the place of the one that waits for it.
    if (isRefusal(error, 'step_up_required')) throw new Error(error.message, { cause: error })
    throw error
  }
  const waiting = refused
  forgetStepUp()
  if (waiting === null) tell('Confirmed.')
  else await attempt(waiting)
}
