import { type Answer, ask, isObject } from './api.ts'

/** Loads the account of the current session. @throws Error `unauthenticated` when the session has expired. */
export async function readAccount(): Promise<Answer> {
  const { account } = await ask('GET', '/api/auth/session')
  return isObject(account) ? account : {}
}
