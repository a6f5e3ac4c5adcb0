/** Recovers a locked account by code, by passkey, or by both. */
import { type Answer, ask, isRefusal, readText } from './api.ts'
import { onRefusal, onSubmit } from './attempts.ts'
import { askForCode } from './codes.ts'
import { find, findForm, focusHeading, readField, show, tell } from './elements.ts'
import { takeNext } from './next.ts'
import { assertionFor } from './passkeys.ts'

const START = '/api/auth/recovery/start'
const COMPLETE = '/api/auth/recovery/complete'
const ANCHOR = '#recovery'

/** Response to the request for the current code. */
let started: Answer = {}

/** Attaches the form handlers, and opens the recovery section when the URL names it. */
export function setUpRecovery(): void {
  if (location.hash === ANCHOR) find('recovery', HTMLDetailsElement)?.setAttribute('open', '')
  onRefusal('account_locked', (_work, words) => offerRecovery(words))
  onSubmit(findForm('recovery-start'), async (form) => {
    started = await askForCode(START, form)
    show('recovery-complete', true)
    find('recovery-code', HTMLInputElement)?.focus()
    tell('If an account has this address, a code is on its way. It works for ten minutes.')
  })
  onSubmit(findForm('recovery-complete'), async (form) => {
    finish(await completeWithCode(readField(form, 'code')))
  })
  onSubmit(findForm('recovery-passkey'), async () => {
    const { challengeId, publicKey } = await ask('POST', START, { channel: 'passkey' })
    finish(await ask('POST', COMPLETE, { challengeId, credential: await assertionFor(publicKey) }))
  })
}

/** Accounts with a passkey require it as well; the API reveals this only after a correct code. */
async function completeWithCode(code: string): Promise<Answer> {
  const shown = { challengeId: readText(started, 'challengeId'), code }
  try {
    return await ask('POST', COMPLETE, shown)
  } catch (error) {
    if (!isRefusal(error, 'step_up_required')) throw error
    tell('The code is right. Now show the account’s passkey.')
    return ask('POST', COMPLETE, { ...shown, credential: await assertionFor(started.publicKey) })
  }
}

/** Leads on after a recovery, or says who has to decide first. */
function finish(answer: Answer): void {
  started = {}
  for (const id of ['recovery-start', 'recovery-complete']) findForm(id)?.reset()
  show('recovery-complete', false)
  if (readText(answer, 'status') === 'review') tell(waiting)
  else leadOn()
}

const waiting =
  'You are recognized as the owner. An administrator locked this account and has to unlock it: you can sign in afterwards. Nothing has changed yet.'

/** Says what recovery changed before it leads on: agents stay stopped until their owner starts them. */
function leadOn(): void {
  find('recovered-next', HTMLAnchorElement)?.setAttribute('href', takeNext())
  show('signed-out', false)
  show('recovered', true)
  tell('')
  focusHeading()
}

/** Opens the recovery section for an account that turns out to be locked. */
function offerRecovery(words: string): void {
  const recovery = find('recovery', HTMLDetailsElement)
  // The provider callback page has no recovery form.
  if (recovery === null) location.assign(`/sign-in${ANCHOR}`)
  recovery?.setAttribute('open', '')
  tell(`${words} Use “Locked out?” to recover it.`, 'error')
  recovery?.querySelector('summary')?.focus()
}
