/** Names of sellers in a policy: origins, and `*.` with a domain for every host below it. One seller has one name. */

/** An IPv6 address, or labels; a domain has at least two, and its last one starts with a letter. */
const HOST = /^(\[[0-9a-f:.]+\]|[a-z0-9_-]+(\.[a-z0-9_-]+)*)(:\d+)?$/
const DOMAIN = /^([a-z0-9_-]+\.)+[a-z][a-z0-9-]*$/
const LOOPBACK = /^(https?:\/\/)(localhost|127\.0\.0\.1|\[::1\])(?=:|$)/

/**
 * Writes a name as URLs of that seller have it: lower case, IDNA, short addresses, no default port, no trailing dot.
 * @returns what cannot be read unchanged.
 * @see https://url.spec.whatwg.org/#host-parsing
 */
export function normalizeSeller(text: string): string {
  const isWildcard = text.startsWith('*.')
  const url = isWildcard ? `https://${text.slice(2)}` : text
  if (!URL.canParse(url)) return text
  const { protocol, hostname, port } = new URL(url)
  const host = hostname.replace(/\.$/, '')
  return isWildcard ? `*.${host}` : `${protocol}//${host}${port === '' ? '' : `:${port}`}`
}

/** Checks a normalized name. Purchases are made by https; by http only on this machine. */
export function isSellerName(name: string): boolean {
  if (normalizeSeller(name) !== name) return false
  if (name.startsWith('*.')) return DOMAIN.test(name.slice(2))
  const [protocol, host = ''] = name.split('//')
  return URL.canParse(name) && HOST.test(host) && (protocol === 'https:' || LOOPBACK.test(name))
}

/** Checks whether a name in a policy is that of a seller. A loopback address has several, which are one machine. */
export function namesSeller(name: string, origin: string): boolean {
  if (!name.startsWith('*.')) return oneLoopback(name) === oneLoopback(origin)
  const host = /^https:\/\/([^/:]+)(:\d+)?$/.exec(origin)?.[1]
  return host?.endsWith(name.slice(1)) === true
}

/** Checks whether a denied name is that of a seller: one without a port at every port, because a seller chooses its own. */
export function deniesSeller(name: string, origin: string): boolean {
  return namesSeller(name, origin) || namesSeller(name, origin.replace(/:\d+$/, ''))
}

function oneLoopback(origin: string): string {
  return origin.replace(LOOPBACK, '$1localhost')
}
