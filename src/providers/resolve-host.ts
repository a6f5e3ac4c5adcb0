/**
 * Resolves untrusted host names with c-ares, under a time limit and a concurrency limit. `dns.lookup` would occupy
 * the thread pool that provider calls need for as long as a silent name server takes. The hosts file is not read,
 * because it names internal hosts.
 */

import { promises } from 'node:dns'
import { timers } from '../core/base/timers.ts'

/** @property servers replaces the system's name servers in tests. */
export interface ResolverOptions {
  readonly timeoutMs?: number
  readonly maxAtOnce?: number
  readonly servers?: readonly string[]
}

/**
 * Creates a function that resolves a host name to all of its addresses, IPv4 first. @throws Error when the name has a
 * single label or no address, when it takes too long, or when too many look-ups are running.
 */
export function createHostResolver({
  timeoutMs = 1_500,
  maxAtOnce = 16,
  servers,
}: ResolverOptions = {}): (host: string) => Promise<readonly string[]> {
  let running = 0
  return async (host) => {
    // Single-label names belong to this machine or its network.
    if (!host.replace(/\.$/, '').includes('.')) throw new Error(`${host} is not on the public internet`)
    if (running >= maxAtOnce) throw new Error('too many host names are being resolved')
    const resolver = new promises.Resolver({ timeout: timeoutMs, tries: 1 })
    if (servers !== undefined) resolver.setServers(servers)
    // The resolver's own timeout can take up to twice as long.
    const cancelTimeout = timers.after(timeoutMs, () => resolver.cancel())
    running += 1
    try {
      return await resolveAddresses(resolver, host)
    } finally {
      running -= 1
      cancelTimeout()
    }
  }
}

async function resolveAddresses(resolver: promises.Resolver, host: string): Promise<readonly string[]> {
  const [four, six] = await Promise.allSettled([resolver.resolve4(host), resolver.resolve6(host)])
  const addresses = [four, six].flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : []))
  if (addresses.length > 0) return addresses
  throw four.status === 'rejected' ? four.reason : new Error(`${host} has no address`)
}
