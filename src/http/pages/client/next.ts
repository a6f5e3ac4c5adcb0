/** Remembers the page that required a sign-in, across the redirect to an identity provider. */

const KEY = 'next'

/** Pages that redirect to the sign-in page. */
const OURS = /^\/(oauth\/consent|approvals|agents\/connect|devices)\/[A-Za-z0-9_-]{1,64}$/

/** Stores the `next` query parameter. */
export function rememberNext(): void {
  const next = new URLSearchParams(location.search).get('next') ?? ''
  if (OURS.test(next)) sessionStorage.setItem(KEY, next)
}

/** Navigates to the stored page once. @returns false if there is none. */
export function goOn(): boolean {
  const next = sessionStorage.getItem(KEY) ?? ''
  sessionStorage.removeItem(KEY)
  if (!OURS.test(next)) return false
  location.assign(next)
  return true
}
