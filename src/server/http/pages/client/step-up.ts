/** Asks for a second factor when an action requires it, then repeats the action. */
import { type Answer, ask, isRefusal } from './api.ts'
import { attempt, onRefusal, onSubmit, type Work } from './attempts.ts'
import { find, findForm, readField, show, tell } from './elements.ts'
import { readAccount } from './session.ts'

/** Action that awaits a second factor. */
let refused: Work | null = null

export function setUpStepUp(): void {
  onRefusal('step_up_required', askForSecondFactor)
  onSubmit(findForm('step-up-app'), (form) => confirm(form, { code: readField(form, 'code') }))
  onSubmit(findForm('step-up-recovery'), (form) =>
    confirm(form, { recoveryCode: readField(form, 'recoveryCode') }),
  )
}

function forgetStepUp(): void {
  refused = null
  for (const id of ['step-up-app', 'step-up-recovery']) findForm(id)?.reset()
  show('step-up', false)
}

/** Accounts without a second factor need a new sign-in, which the failure message already says. */
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
    // A wrong code fails with the same code as a missing one; dropping it keeps the pending action in place.
    if (isRefusal(error, 'step_up_required')) throw new Error(error.message, { cause: error })
    throw error
  }
  const waiting = refused
  forgetStepUp()
  if (waiting === null) tell('Confirmed.')
  else await attempt(waiting)
}
