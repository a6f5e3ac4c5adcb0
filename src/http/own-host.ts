/**
 * Which hosts are ours. A page whose name was made to resolve to this machine (DNS rebinding) speaks to us from a browser in
 * here as if it were ours, but its Host header tells its own name.
 */

import { isLoopbackHost, namesOfOrigin } from '../base/origins.ts'
import { Failure } from '../failures/failure.ts'
import type { Settings } from '../kernel/context.ts'
import type { HttpContext } from './request.ts'

/** Makes the check of requests. @throws Failure `cross_site_request`, by the check. */
export function ownHostCheck({ origin, mode }: Pick<Settings, 'origin' | 'mode'>): (c: HttpContext) => void {
  const hosts = new Set(namesOfOrigin(origin).map((name) => new URL(name).host))
  return (c) => {
    const { incoming } = c.env ?? {}
    // No listener: the app was called within the process.
    if (incoming === undefined) return
    const host = incoming.headers.host ?? ''
    if (hosts.has(host.toLowerCase())) return
    // A sandbox with an origin of its own is also reached where it listens.
    if (mode === 'sandbox' && isLoopbackHost(host, incoming.socket.localPort ?? 0)) return
    throw new Failure('cross_site_request', 'The Host of this request is not ours.', {
      hint: `Connect to ${origin}.`,
    })
  }
}
