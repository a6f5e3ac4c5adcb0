/**
 * Look-ups of strangers' host names, apart from our own: `dns.lookup` runs on the threads that every provider call needs, and a
 * name server that is silent holds one of them for as long as it likes. These run on c-ares, for a limited time, a few at once.
 * The hosts file is not read: it names our neighbours.
 */

import type { LookupAddress } from 'node:dns'
import { promises } from 'node:dns'

/** The limits of look-ups. @property servers in place of the system's, for tests. */
export interface ResolverOptions {
  readonly timeoutMs?: number
  readonly maxAtOnce?: number
  readonly servers?: readonly string[]
}

/**
 * Makes a function that resolves a host name to all of its addresses.
 * @throws Error where the name has a single label, has no address, takes too long, or too many look-ups run already.
 */
export function createResolver({
  timeoutMs = 1_500,
  maxAtOnce = 16,
  servers,
}: ResolverOptions = {}): (host: string) => Promise<LookupAddress[]> {
  let running = 0
  return async (host) => {
    // A single label is a name of this machine or its network.
    if (!host.replace(/\.$/, '').includes('.')) throw new Error(`${host} is not on the public internet`)
    if (running >= maxAtOnce) throw new Error('too many host names are looked up at the moment')
    const resolver = new promises.Resolver({ timeout: timeoutMs, tries: 1 })
    if (servers !== undefined) resolver.setServers(servers)
    // The resolver's own time limit takes up to twice as long.
    const timer = setTimeout(() => resolver.cancel(), timeoutMs)
    running += 1
    try {
      return await addressesOf(resolver, host)
    } finally {
      running -= 1
      clearTimeout(timer)
    }
  }
}

async function addressesOf(resolver: promises.Resolver, host: string): Promise<LookupAddress[]> {
  const [four, six] = await Promise.allSettled([resolver.resolve4(host), resolver.resolve6(host)])
  const addresses = [
    ...(four.status === 'fulfilled' ? four.value.map((address) => ({ address, family: 4 })) : []),
    ...(six.status === 'fulfilled' ? six.value.map((address) => ({ address, family: 6 })) : []),
  ]
  if (addresses.length > 0) return addresses
  throw four.status === 'rejected' ? four.reason : new Error(`${host} has no address`)
}
