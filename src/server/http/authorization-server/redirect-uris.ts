/** Validates redirect URIs of OAuth clients. @see https://www.rfc-editor.org/rfc/rfc8252#section-7 */

const loopback: ReadonlySet<string> = new Set(['localhost', '127.0.0.1', '[::1]'])

/**
 * Returns why a redirect URI is unsafe, or undefined if it is acceptable. Strings that are not URIs are rejected by
 * the library.
 */
export function redirectUriError(uri: string): string | undefined {
  if (!URL.canParse(uri)) return undefined
  const { protocol, hostname, username, password } = new URL(uri)
  if (/[\s\p{C}*]/u.test(uri)) return 'must not contain spaces, control characters or wildcards'
  if (username !== '' || password !== '') return 'must not contain user information'
  if (protocol === 'http:' && !loopback.has(hostname))
    return 'must use https, or http on localhost, 127.0.0.1 or [::1]'
  return undefined
}

/** Checks whether a redirect URI leads to a program on the person's own machine: loopback, or a scheme of its own. */
export function leadsToOwnMachine(uri: string): boolean {
  if (!URL.canParse(uri)) return false
  const { protocol, hostname } = new URL(uri)
  return protocol === 'https:' ? false : protocol !== 'http:' || loopback.has(hostname)
}
