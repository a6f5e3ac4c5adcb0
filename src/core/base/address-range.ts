/** IP addresses and CIDR ranges. */
import { isIP } from 'node:net'

export function isAddressRange(text: string): boolean {
  const [address = '', prefix = '0', ...rest] = text.split('/')
  const bits = isIP(address) === 6 ? 128 : 32
  return isIP(address) !== 0 && /^\d{1,3}$/.test(prefix) && Number(prefix) <= bits && rest.length === 0
}

/** The /48 of a client's IPv6 /64, such as `2001:db8:0::/48`; null for an IPv4 address. */
export function findNetwork(address: string): string | null {
  const groups = address.split('::/64')[0]?.split(':') ?? []
  return address.endsWith('::/64') ? `${groups.slice(0, 3).join(':')}::/48` : null
}
