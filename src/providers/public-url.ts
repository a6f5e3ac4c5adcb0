/**
 * Judges URLs that strangers choose: sellers, webhook receivers, OAuth clients. Pure: the text and the addresses only.
 * A name still has to be resolved, and each of its addresses judged (`public-fetch.ts`).
 */
import { BlockList, isIP } from 'node:net'

/** The part of a URL that was refused. */
export type PublicUrlRefusal =
  | 'too_long'
  | 'form'
  | 'scheme'
  | 'credentials'
  | 'host_form'
  | 'port'
  | 'address'

const MAX_URL_LENGTH = 2_048
const FIRST_FREE_PORT = 1_024

/** At least two labels, and a last one that starts with a letter; no trailing dot. */
const hostName = /^(?=.{1,253}$)([a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?\.)+[a-z]([a-z0-9-]{0,61}[a-z0-9])?$/

/** Literals only: another name that resolves to loopback stays refused. */
const loopbackHosts: ReadonlySet<string> = new Set(['127.0.0.1', '[::1]', 'localhost'])

/**
 * Reads an absolute URL of the public internet: https on port 443 or from 1024 up, to a name or a public address. The
 * host must be written as it is understood, because a parser turns `2130706433`, `127.1` and circled digits into
 * 127.0.0.1. @param loopback also permits http and https to this machine's loopback. @returns the URL without fragment.
 */
export function readPublicUrl(
  text: string,
  { loopback }: { readonly loopback: boolean },
): { readonly url: URL } | { readonly refused: PublicUrlRefusal; readonly detail: string } {
  const refuse = (refused: PublicUrlRefusal, detail: string) => ({ refused, detail })
  if (text.length > MAX_URL_LENGTH)
    return refuse('too_long', `The URL is over ${MAX_URL_LENGTH} characters long.`)
  const [, scheme = '', authority = ''] = /^([a-z][a-z0-9+.-]*):\/\/([^/?#]+)/i.exec(text) ?? []
  // A backslash separates paths for browsers only; control and format characters hide parts of the text.
  if (authority === '' || /[\s\\\p{C}]/u.test(text) || !URL.canParse(text))
    return refuse('form', 'The URL must be absolute, such as https://api.example.com/report.')
  if (!/^https?$/i.test(scheme)) return refuse('scheme', `The scheme ${scheme} is not https.`)
  if (authority.includes('@')) return refuse('credentials', 'The URL must not contain a user or a password.')
  const url = new URL(text)
  url.hash = ''
  const { hostname } = url
  const address = addressOfHost(hostname)
  // An IPv6 address has many fair spellings, and is judged in its normal form.
  if (isIP(address) !== 6 && hostname !== authority.replace(/:\d*$/, '').toLowerCase())
    return refuse('host_form', `The host must be written in its plain form, ${hostname}.`)
  if (loopback && loopbackHosts.has(hostname)) return { url }
  if (url.protocol !== 'https:') return refuse('scheme', 'The scheme http is not https.')
  if (url.port !== '' && Number(url.port) < FIRST_FREE_PORT)
    return refuse('port', `Port ${url.port} is not permitted; use 443 or a port from ${FIRST_FREE_PORT} up.`)
  if (isIP(address) !== 0 && !addressIsPublic(address))
    return refuse('address', `${address} is not on the public internet.`)
  if (isIP(address) === 0 && !hostName.test(hostname))
    return refuse('host_form', `${hostname} is not a full name of the public internet.`)
  return { url }
}

/** The IP address that a URL's host names literally, without the brackets of IPv6; any other host unchanged. */
export function addressOfHost(hostname: string): string {
  return hostname.replace(/^\[|\]$/g, '')
}

/**
 * True for addresses of the public internet. IPv6 is refused by default: mapped, NAT64, unique local and link local
 * addresses are outside global unicast. @see https://www.iana.org/assignments/iana-ipv4-special-registry/
 */
export function addressIsPublic(address: string): boolean {
  const family = isIP(address)
  if (family === 4) return !special4.check(address, 'ipv4')
  // A zone (`%eth0`) belongs to a local link.
  if (family !== 6 || address.includes('%')) return false
  return globalUnicast6.check(address, 'ipv6') && !special6.check(address, 'ipv6')
}

const special4 = toBlockList('ipv4', [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  ['169.254.0.0', 16],
  ['172.16.0.0', 12],
  ['192.0.0.0', 24],
  ['192.0.2.0', 24],
  ['192.88.99.0', 24],
  ['192.168.0.0', 16],
  ['198.18.0.0', 15],
  ['198.51.100.0', 24],
  ['203.0.113.0', 24],
  ['224.0.0.0', 3],
])
const globalUnicast6 = toBlockList('ipv6', [['2000::', 3]])
/** Teredo and other assignments of the IETF, documentation, and 6to4, which embeds an IPv4 address. */
const special6 = toBlockList('ipv6', [
  ['2001::', 23],
  ['2001:db8::', 32],
  ['2002::', 16],
  ['3fff::', 20],
])

function toBlockList(family: 'ipv4' | 'ipv6', ranges: readonly (readonly [string, number])[]): BlockList {
  const list = new BlockList()
  for (const [network, bits] of ranges) list.addSubnet(network, bits, family)
  return list
}
