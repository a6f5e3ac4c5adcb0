/** The way back into an account that is locked: by a code that is sent, by a passkey, or by both. */
import { showAccount, showWaysIn } from './account.ts'
import { type Answer, ask, isRefusal, textOf } from './api.ts'
import { onRefusal, onSubmit } from './attempts.ts'
import { askForCode } from './codes.ts'
import { fieldOf, find, formOf, show, tell } from './elements.ts'
import { assertionFor } from './passkeys.ts'

const START = '/api/auth/recovery/start'
const COMPLETE = '/api/auth/recovery/complete'
const ANCHOR = '#recovery'
const DONE = 'Your account is yours again. All other sessions have ended, and its keys are paused.'

/** What the code that is on its way was asked for with. */
let started: Answer = {}

/** Makes the forms work, and opens them for whoever was sent here for them. */
export function setUpRecovery(): void {
  if (location.hash === ANCHOR) find('recovery', HTMLDetailsElement)?.setAttribute('open', '')
  onRefusal('account_locked', (_work, words) => offerRecovery(words))
  onSubmit(formOf('recovery-start'), async (form) => {
    started = await askForCode(START, form)
    show('recovery-complete', true)
    find('recovery-code', HTMLInputElement)?.focus()
    tell('If an account has this address, a code is on its way. It works for ten minutes.')
  })
  onSubmit(formOf('recovery-complete'), async (form) => {
    await completeWithCode(fieldOf(form, 'code'))
    await finish()
  })
  onSubmit(formOf('recovery-passkey'), async () => {
    const { challengeId, publicKey } = await ask('POST', START, { channel: 'passkey' })
    await ask('POST', COMPLETE, { challengeId, credential: await assertionFor(publicKey) })
    await finish()
  })
}

/** An account with a passkey needs that too, which is told only to whoever knows the code. */
async function completeWithCode(code: string): Promise<void> {
  const shown = { challengeId: textOf(started, 'challengeId'), code }
  try {
    await ask('POST', COMPLETE, shown)
  } catch (error) {
    if (!isRefusal(error, 'step_up_required')) throw error
    tell('The code is right. Now show the account’s passkey.')
    await ask('POST', COMPLETE, { ...shown, credential: await assertionFor(started.publicKey) })
  }
}

async function finish(): Promise<void> {
  started = {}
  for (const id of ['recovery-start', 'recovery-complete']) formOf(id)?.reset()
  show('recovery-complete', false)
  find('recovery', HTMLDetailsElement)?.removeAttribute('open')
  await showAccount(DONE)
}

/** Opens the way back, wherever the lock was met: no session of the account holds any more. */
function offerRecovery(words: string): void {
  showWaysIn('')
  const recovery = find('recovery', HTMLDetailsElement)
  // The page that a provider sends people back to has no forms.
  if (recovery === null) location.assign(`/sign-in${ANCHOR}`)
  recovery?.setAttribute('open', '')
  tell(`${words} Use “Locked out?” to get it back.`, 'error')
  recovery?.querySelector('summary')?.focus()
}
