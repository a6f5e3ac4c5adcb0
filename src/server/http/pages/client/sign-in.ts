/** Script of the sign-in page: attaches the form handlers. */
import { ask, readText } from './api.ts'
import { attempt, onSubmit } from './attempts.ts'
import { askForCode } from './codes.ts'
import { find, findForm, focusHeading, readField, show, tell } from './elements.ts'
import { goOn, rememberNext } from './next.ts'
import { canUsePasskeys, makePasskey, signInWithPasskey } from './passkeys.ts'
import { comeBack, goTo } from './providers.ts'
import { setUpRecovery } from './recovery.ts'

/** Said to a visitor whom the console sent here, by the fragment of the address. */
const newsByFragment: Readonly<Record<string, string>> = {
  '#signed-out': 'You are signed out.',
  '#ended': 'You are no longer signed in. Please sign in again.',
}

let challengeId = ''

rememberNext()
setUpRecovery()

onSubmit(findForm('passkey-sign-in'), async () => {
  await signInWithPasskey()
  goOn()
})
onSubmit(findForm('passkey-create'), async (form) => {
  await makePasskey({ displayName: readField(form, 'displayName') })
  goOn()
})
onSubmit(findForm('code-start'), async (form) => {
  challengeId = readText(await askForCode('/api/auth/otp/start', form), 'challengeId')
  show('code-verify', true)
  find('code', HTMLInputElement)?.focus()
  tell('A code is on its way. It works for ten minutes.')
})
onSubmit(findForm('code-verify'), async (form) => {
  await ask('POST', '/api/auth/otp/verify', { challengeId, code: readField(form, 'code') })
  form.reset()
  goOn()
})
for (const form of document.querySelectorAll('form'))
  onSubmit(form.dataset.provider === undefined ? null : form, () => goTo(form.dataset.provider ?? ''))
onSubmit(findForm('guest'), async () => {
  await ask('POST', '/api/auth/guest', {})
  goOn()
})
const { page, provider = '' } = document.body.dataset
const refusal = find('status', HTMLElement)?.textContent ?? ''
const news = newsByFragment[location.hash]
if (page === 'callback') void attempt(() => comeBack(provider))
if (refusal !== '') tell(refusal, 'error')
else if (news !== undefined) {
  history.replaceState(null, '', location.pathname)
  tell(news)
  focusHeading()
} else if (page === 'sign-in' && !canUsePasskeys()) tell('This browser cannot use passkeys here.', 'error')
