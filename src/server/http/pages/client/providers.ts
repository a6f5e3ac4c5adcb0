/** Signs in through an identity provider by redirect. */
import { ask, readText } from './api.ts'
import { goOn } from './next.ts'

const nameAttempt = (provider: string) => `bursar sign-in ${provider}`

/** Redirects to a provider and stores the state, which the callback must match. */
export async function goTo(provider: string): Promise<void> {
  const answer = await ask('POST', `/api/auth/${encodeURIComponent(provider)}`, {})
  const url = readText(answer, 'authorizationUrl')
  if (!/^https?:\/\//.test(url)) throw new Error('The provider cannot be reached.')
  sessionStorage.setItem(nameAttempt(provider), readText(answer, 'state'))
  location.assign(url)
}

/** Completes the sign-in after the redirect. @throws Error when this browser did not start it. */
export async function comeBack(provider: string): Promise<void> {
  const brought = new URLSearchParams(location.search)
  // Removes the code from the browser history.
  history.replaceState(null, '', location.pathname)
  const kept = sessionStorage.getItem(nameAttempt(provider))
  sessionStorage.removeItem(nameAttempt(provider))
  const [code, state, iss] = [brought.get('code'), brought.get('state'), brought.get('iss')]
  if (kept === null || state !== kept)
    throw new Error('This sign-in was not started here. Please start again.')
  if (code === null) throw new Error('The provider did not sign you in. Please start again.')
  await ask('POST', `/api/auth/${encodeURIComponent(provider)}`, {
    code,
    state,
    ...(iss === null ? {} : { iss }),
  })
  goOn()
}
