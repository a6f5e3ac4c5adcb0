/** Whoever is signed in, as the gateway knows them. */
import { type Answer, ask, isObject } from './api.ts'

/** The account that is signed in. @throws Error `unauthenticated` where the session has ended. */
export async function readAccount(): Promise<Answer> {
  const { account } = await ask('GET', '/api/auth/session')
  return isObject(account) ? account : {}
}
