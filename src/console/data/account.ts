/** The person who is signed in, and what this deployment is. */
import { computed, effect } from '@preact/signals'
import { bursar, leaveSignedOut, signInAgain } from './gateway.ts'
import { forgetPayments, keepPayments } from './payments.ts'
import { endOwnPush, readPushState } from './push.ts'
import { loadedValue, resource } from './resource.ts'

export const session = resource(() => bursar.auth.session(), ['security.', 'kyc.', 'person.'])

export const account = computed(() => loadedValue(session.state.value)?.account)

/** Facts that the page was served with. */
export const deployment = {
  isSandbox: document.documentElement.dataset.mode === 'sandbox',
  chain: document.documentElement.dataset.chain ?? '',
  origin: location.origin,
}

/**
 * Watches the signed-in person. Another tab may sign in another one, and this page would act for them while it shows the
 * money of the first: it begins anew instead.
 */
/** @param tellRepeated see {@link keepPayments} */
export function watchAccount(tellRepeated: (begunAt: string) => void): void {
  keepPayments({
    storage: localStorage,
    accountId: async () => account.peek()?.id ?? (await bursar.auth.session()).account.id,
    tellRepeated,
  })
  let first: string | undefined
  effect(() => {
    const id = account.value?.id
    if (id === undefined) return
    if (first === undefined) void readPushState().catch(() => undefined)
    else if (first !== id) location.replace('/')
    first = id
  })
  addEventListener('visibilitychange', () => {
    if (document.visibilityState === 'visible') void session.reload()
  })
  addEventListener('pageshow', (event) => {
    // The browser kept the page from before: its money may be of a session that has ended.
    if (event.persisted) location.reload()
  })
}

/** Ends the session, and with it the messages to this browser: the next person here must not read them. */
export async function signOut(): Promise<void> {
  await endOwnPush().catch(() => undefined)
  const id = account.peek()?.id
  await bursar.auth.logout()
  if (id !== undefined) forgetPayments(id)
  leaveSignedOut()
}

/** Ends the session and leads back here after a new sign-in by the same person. Messages to this browser go on from then. */
export async function signInAnew(): Promise<void> {
  await bursar.auth.logout()
  signInAgain()
}
