/** The names of a gateway: an origin on this machine has several, which all are one origin. Every other has one. */

const LOOPBACK_NAMES = ['127.0.0.1', 'localhost', '[::1]'] as const

/** Every name of an origin, the given one first. */
export function namesOfOrigin(origin: string): readonly string[] {
  const { protocol, hostname, port } = new URL(origin)
  if (!LOOPBACK_NAMES.some((name) => name === hostname)) return [origin]
  const end = port === '' ? '' : `:${port}`
  return [...new Set([origin, ...LOOPBACK_NAMES.map((name) => `${protocol}//${name}${end}`)])]
}

/** The name of an origin that a Host header uses; the origin itself where it uses none of them. */
export function nameUsed(origin: string, host: string | undefined): string {
  const given = host?.toLowerCase()
  return namesOfOrigin(origin).find((name) => new URL(name).host === given) ?? origin
}

/** Whether a Host header names a port of this machine by a loopback name. */
export function isLoopbackHost(host: string, port: number): boolean {
  const given = host.toLowerCase()
  return LOOPBACK_NAMES.some((name) => given === `${name}:${port}` || (port === 80 && given === name))
}
