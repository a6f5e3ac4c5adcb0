/** Determines the client address. X-Forwarded-For is used only as far as trusted proxies have written it. */
import { BlockList, isIP } from 'node:net'
import { isAddressRange } from '../../core/base/address-range.ts'

/** @throws Error naming an entry that is neither an address nor a CIDR. */
export function trustedProxyList(entries: readonly string[]): BlockList {
  const list = new BlockList()
  for (const entry of entries) {
    const [address = '', prefix] = entry.split('/')
    if (!isAddressRange(entry)) throw new Error(`TRUSTED_PROXIES: "${entry}" is not an address or CIDR`)
    const kind = isIP(address) === 6 ? 'ipv6' : 'ipv4'
    if (prefix === undefined) list.addAddress(address, kind)
    else list.addSubnet(address, Number(prefix), kind)
  }
  return list
}

/** The client address for rate limits: the full IPv4 address, or the /64 prefix of IPv6. */
export function findClientAddress(
  peer: string,
  forwardedFor: string | undefined,
  trusted: BlockList,
): string {
  let client = plain(peer)
  const forwarded = (forwardedFor ?? '').split(',').map((hop) => plain(hop.trim()))
  const hops = forwardedFor === undefined ? [] : [...forwarded.filter((hop) => hop !== ''), client]
  for (const hop of hops.reverse()) {
    if (isIP(hop) === 0) break
    client = hop
    if (!trusted.check(hop, isIP(hop) === 6 ? 'ipv6' : 'ipv4')) break
  }
  return isIP(client) === 6 ? prefix64(client) : client
}

function plain(address: string): string {
  return address.replace(/^::ffff:(?=\d+\.\d+\.\d+\.\d+$)/i, '')
}

function prefix64(address: string): string {
  const [head = '', tail] = address.toLowerCase().split('::')
  const groups = head === '' ? [] : head.split(':')
  const rest = tail === undefined || tail === '' ? [] : tail.split(':')
  const zeros =
    tail === undefined ? [] : Array.from({ length: Math.max(0, 8 - groups.length - rest.length) }, () => '0')
  return `${[...groups, ...zeros, ...rest]
    .slice(0, 4)
    .map((group) => group.replace(/^0+(?=.)/, ''))
    .join(':')}::/64`
}
