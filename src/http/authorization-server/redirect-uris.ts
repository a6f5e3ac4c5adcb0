/** Where a client may have people sent back to. @see https://www.rfc-editor.org/rfc/rfc8252#section-7 */

const loopback: ReadonlySet<string> = new Set(['localhost', '127.0.0.1', '[::1]'])

/** Why a code cannot be sent to a URI safely, or undefined where it can. What is no URI at all is judged elsewhere. */
export function redirectUriError(uri: string): string | undefined {
  if (!URL.canParse(uri)) return undefined
  const { protocol, hostname, username, password } = new URL(uri)
  if (/[\s\p{C}*]/u.test(uri)) return 'must hold no spaces, control characters or wildcards'
  if (username !== '' || password !== '') return 'must not hold user information'
  if (protocol === 'http:' && !loopback.has(hostname))
    return 'must use https, or http on localhost, 127.0.0.1 or [::1]'
  return undefined
}
