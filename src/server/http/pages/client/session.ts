import { type Answer, ask, isObject } from './api.ts'

/** Loads the account of the current session. @throws Error `unauthenticated` when the session has expired. */
export async function readAccount(): Promise<Answer> {
  const { account } = await ask('GET', '/api/auth/session')
  return isObject(account) ? account : {}
}

/** Another person may have signed in since the page was opened. @throws Error if the form is another account's. */
export async function requireSameAccount(form: HTMLFormElement): Promise<void> {
  const { id } = await readAccount()
  if (id !== form.dataset.account)
    throw new Error('A different account is now signed in. Reload the page and check the account.')
}
