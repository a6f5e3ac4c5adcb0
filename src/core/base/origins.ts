/** Aliases of the gateway's origin. A loopback origin has several names; every other origin has one. */

const LOOPBACK_NAMES = ['127.0.0.1', 'localhost', '[::1]'] as const

/** All names of an origin, the given one first. */
export function listOriginNames(origin: string): readonly string[] {
  const { protocol, hostname, port } = new URL(origin)
  if (!LOOPBACK_NAMES.some((name) => name === hostname)) return [origin]
  const end = port === '' ? '' : `:${port}`
  return [...new Set([origin, ...LOOPBACK_NAMES.map((name) => `${protocol}//${name}${end}`)])]
}

/** The origin name that matches a Host header, or the origin itself. */
export function matchOriginName(origin: string, host: string | undefined): string {
  const given = host?.toLowerCase()
  return listOriginNames(origin).find((name) => new URL(name).host === given) ?? origin
}

/** True if a Host header is a loopback name with this port. */
export function isLoopbackHost(host: string, port: number): boolean {
  const given = host.toLowerCase()
  return LOOPBACK_NAMES.some((name) => given === `${name}:${port}` || (port === 80 && given === name))
}
