/**
 * Checks the Host header, which defeats DNS rebinding: a page whose name resolves to this machine reaches the gateway
 * from a local browser, but its Host header shows its own name.
 */

import { isLoopbackHost, listOriginNames } from '../../core/base/origins.ts'
import { Failure } from '../../core/failures/failure.ts'
import type { Settings } from '../../kernel/context.ts'
import type { HttpContext } from './request.ts'

/** @returns a check that throws Failure `cross_site_request`. */
export function ownHostCheck({ origin, mode }: Pick<Settings, 'origin' | 'mode'>): (c: HttpContext) => void {
  const hosts = new Set(listOriginNames(origin).map((name) => new URL(name).host))
  return (c) => {
    const { incoming } = c.env ?? {}
    // Without a listener the app is called in-process.
    if (incoming === undefined) return
    const host = incoming.headers.host ?? ''
    if (hosts.has(host.toLowerCase())) return
    // A sandbox with a configured origin is also reachable at its listening address.
    if (mode === 'sandbox' && isLoopbackHost(host, incoming.socket.localPort ?? 0)) return
    throw new Failure('cross_site_request', 'The Host header does not name this gateway.', {
      hint: `Connect to ${origin}.`,
    })
  }
}
