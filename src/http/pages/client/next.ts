/** Where a person was going when they had to sign in first. Kept over the way to an identity provider and back. */

const KEY = 'next'

/** Our own pages that send people here to sign in. */
const OURS = /^\/(oauth\/consent|approvals)\/[A-Za-z0-9_-]{1,64}$/

/** Remembers what the address names. */
export function rememberNext(): void {
  const next = new URLSearchParams(location.search).get('next') ?? ''
  if (OURS.test(next)) sessionStorage.setItem(KEY, next)
}

/** Goes there, once. @returns whether there was anywhere to go. */
export function goOn(): boolean {
  const next = sessionStorage.getItem(KEY) ?? ''
  sessionStorage.removeItem(KEY)
  if (!OURS.test(next)) return false
  location.assign(next)
  return true
}
