/** From where a gateway's address can be reached. */

/** `own`: from its own computer only. `near`: from its own network. `plain`: from anywhere, but not encrypted. */
export type Reach = 'own' | 'near' | 'plain' | 'anywhere'

/** Endings of names that only a private network resolves. */
const PRIVATE_NAME = /(^|\.)(local|lan|home|internal|intranet|localdomain|home\.arpa)$/

/** @param origin such as `http://localhost:8787` */
export function findReach(origin: string): Reach {
  const { hostname, protocol } = new URL(origin)
  const host = hostname.replace(/\.$/, '')
  if (/(^|\.)localhost$/.test(host) || /^127\./.test(host) || host === '[::1]' || host === '0.0.0.0')
    return 'own'
  if (isPrivateAddress(host) || PRIVATE_NAME.test(host) || !/[.:]/.test(host)) return 'near'
  return protocol === 'https:' ? 'anywhere' : 'plain'
}

/** True for addresses that the internet does not route. @see https://www.rfc-editor.org/rfc/rfc6890 */
function isPrivateAddress(host: string): boolean {
  return (
    /^(10|192\.168|169\.254|172\.(1[6-9]|2\d|3[01])|100\.(6[4-9]|[7-9]\d|1[01]\d|12[0-7]))\.[\d.]+$/.test(
      host,
    ) || /^\[(f[cd]|fe[89ab])/.test(host)
  )
}
