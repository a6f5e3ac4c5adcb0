/** The account view: display name, id and passkeys. */
import { type Answer, ask, itemsOf, textOf } from './api.ts'
import { attempt, onRefusal } from './attempts.ts'
import { find, focusHeading, isShown, show, tell } from './elements.ts'
import { goOn } from './next.ts'
import { readAccount } from './session.ts'
import { forgetStepUp } from './step-up.ts'

/** Returns to the sign-in view, with the reason, when the session has expired. */
export function setUpAccount(): void {
  onRefusal('unauthenticated', (_work, words) => {
    if (isShown('signed-in')) showWaysIn(`You are no longer signed in. ${words}`, 'error')
  })
}

/** Shows the account view with a status message. */
export async function showAccount(news: string): Promise<void> {
  if (goOn()) return
  const account = await readAccount()
  const { passkeys, isMore } = await readPasskeys()
  const who = find('who', HTMLElement)
  if (who !== null) who.textContent = textOf(account, 'displayName')
  const id = find('account-id', HTMLElement)
  if (id !== null) id.textContent = textOf(account, 'id')
  const list = find('passkeys', HTMLElement)
  list?.replaceChildren(...passkeys.map(rowOf))
  if (passkeys.length === 0) list?.append(lineOf('None yet.'))
  if (isMore) list?.append(lineOf('Older passkeys are not shown.'))
  const isNew = !isShown('signed-in')
  show('signed-out', false)
  show('signed-in', true)
  document.title = 'Your account · Bursar'
  tell(news)
  if (isNew) focusHeading()
}

/** Shows the sign-in view. */
export function showWaysIn(news: string, kind: 'news' | 'error' = 'news'): void {
  const isNew = isShown('signed-in')
  show('signed-in', false)
  show('signed-out', true)
  forgetStepUp()
  document.title = 'Sign in · Bursar'
  tell(news, kind)
  if (isNew) focusHeading()
}

async function readPasskeys(): Promise<{ passkeys: readonly Answer[]; isMore: boolean }> {
  const answer = await ask('GET', '/api/security/passkeys?limit=100')
  return { passkeys: itemsOf(answer, 'passkeys'), isMore: answer.nextCursor !== null }
}

function rowOf(passkey: Answer): HTMLElement {
  const made = dayOf(textOf(passkey, 'createdAt'))
  const used = textOf(passkey, 'lastUsedAt')
  const row = lineOf(`Created on ${made}, ${used === '' ? 'never used' : `used on ${dayOf(used)}`}`)
  const button = document.createElement('button')
  button.type = 'button'
  button.textContent = 'Remove'
  button.setAttribute('aria-label', `Remove the passkey created on ${made}`)
  button.addEventListener('click', () => void attempt(() => remove(textOf(passkey, 'id'))))
  row.append(button)
  return row
}

async function remove(id: string): Promise<void> {
  await ask('DELETE', `/api/security/passkeys/${encodeURIComponent(id)}`)
  await showAccount('Passkey removed.')
}

function lineOf(text: string): HTMLElement {
  const line = document.createElement('li')
  const words = document.createElement('span')
  words.textContent = text
  line.append(words)
  return line
}

function dayOf(time: string): string {
  return new Date(time).toLocaleString(undefined, { dateStyle: 'medium', timeStyle: 'short' })
}
