/** Remembers the page that required a sign-in, across the redirect to an identity provider. */
import { parseOwnPage } from './own-page.ts'

const KEY = 'next'

/** Stores the `next` query parameter. */
export function rememberNext(): void {
  const next = parseOwnPage(new URLSearchParams(location.search).get('next') ?? '')
  if (next !== null) sessionStorage.setItem(KEY, next)
}

/** Takes the stored page. @returns the console's first page if there is none */
export function takeNext(): string {
  const next = parseOwnPage(sessionStorage.getItem(KEY) ?? '')
  sessionStorage.removeItem(KEY)
  return next ?? '/'
}

/** Leaves for the stored page. The sign-in page stays out of the browser's history. */
export function goOn(): void {
  location.replace(takeNext())
}
