/** Script of the sign-in page: attaches the form handlers. */
import { setUpAccount, showAccount, showWaysIn } from './account.ts'
import { ask, textOf } from './api.ts'
import { attempt, onSubmit } from './attempts.ts'
import { askForCode } from './codes.ts'
import { fieldOf, find, formOf, show, tell } from './elements.ts'
import { rememberNext } from './next.ts'
import { canUsePasskeys, makePasskey, signInWithPasskey } from './passkeys.ts'
import { comeBack, goTo } from './providers.ts'
import { setUpRecovery } from './recovery.ts'
import { readAccount } from './session.ts'
import { setUpStepUp } from './step-up.ts'

let challengeId = ''

rememberNext()
setUpAccount()
setUpStepUp()
setUpRecovery()

onSubmit(formOf('passkey-sign-in'), async () => {
  await signInWithPasskey()
  await showAccount('You are signed in.')
})
onSubmit(formOf('passkey-create'), async (form) => {
  await makePasskey({ displayName: fieldOf(form, 'displayName') })
  await showAccount('Your account is created, and you are signed in.')
})
onSubmit(formOf('passkey-add'), async () => {
  // With an expired session, registration would create a new account.
  await readAccount()
  await makePasskey()
  await showAccount('Passkey added.')
})
onSubmit(formOf('code-start'), async (form) => {
  challengeId = textOf(await askForCode('/api/auth/otp/start', form), 'challengeId')
  show('code-verify', true)
  find('code', HTMLInputElement)?.focus()
  tell('A code is on its way. It works for ten minutes.')
})
onSubmit(formOf('code-verify'), async (form) => {
  await ask('POST', '/api/auth/otp/verify', { challengeId, code: fieldOf(form, 'code') })
  form.reset()
  show('code-verify', false)
  await showAccount('You are signed in.')
})
for (const form of document.querySelectorAll('form'))
  onSubmit(form.dataset.provider === undefined ? null : form, () => goTo(form.dataset.provider ?? ''))
onSubmit(formOf('guest'), async () => {
  await ask('POST', '/api/auth/guest', {})
  await showAccount('You are signed in as a guest.')
})
onSubmit(formOf('sign-out'), async () => {
  await ask('POST', '/api/auth/logout', {})
  showWaysIn('You are signed out.')
})
const { page, provider = '' } = document.body.dataset
const refusal = find('status', HTMLElement)?.textContent ?? ''
if (page === 'account') void attempt(() => showAccount(''))
if (page === 'callback') void attempt(() => comeBack(provider))
if (refusal !== '') tell(refusal, 'error')
else if (page === 'sign-in' && !canUsePasskeys()) tell('This browser cannot use passkeys here.', 'error')
