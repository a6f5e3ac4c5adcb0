/**
 * CONNECT: TLS and plain HTTP inside are read as requests, everything else is piped unread. Some clients also tunnel `http://`
 * URLs, and some protocols begin with the server, so that the first bytes decide.
 */
import type { Socket } from 'node:net'
import { type SecureContext, TLSSocket } from 'node:tls'
import { timers } from '../../core/base/timers.ts'
import type { Outgoing } from './outgoing.ts'
import { countPassed } from './passed-bytes.ts'
import type { Target } from './target.ts'

/** A client that is silent for longer waits for the server. */
const SILENT_MS = 300
const TLS_HANDSHAKE = 0x16
const METHOD = /^[A-Z]{3,16} /

export interface TunnelParts {
  readonly outgoing: Outgoing
  readonly leaves: (host: string) => SecureContext
  /** Serves HTTP on a connection whose requests go to this target. */
  readonly serve: (socket: Socket, target: Target) => void
}

/** Decides by the first bytes what a tunnel carries. */
export function openTunnel(parts: TunnelParts, target: Target, socket: Socket): void {
  let upstream: Socket | null = null
  const connectUpstream = () => {
    if (upstream !== null) return
    upstream = openPlain(parts.outgoing, target, socket)
    upstream?.once('readable', startPiping)
  }
  const cancel = timers.after(SILENT_MS, connectUpstream, { isIdle: true })
  const finish = () => {
    cancel()
    socket.off('readable', look).off('close', abandon)
    upstream?.off('readable', startPiping)
  }
  const startPiping = () => {
    finish()
    pipeSockets(socket, upstream ?? openPlain(parts.outgoing, target, socket))
  }
  const abandon = () => {
    finish()
    upstream?.destroy()
  }
  const look = () => {
    // Reading by events of data would lose these bytes for whoever reads next.
    const first: Buffer | null = socket.read()
    if (first === null) {
      if (socket.readableEnded) abandon()
      return
    }
    socket.unshift(first)
    const isTls = first[0] === TLS_HANDSHAKE
    if (!isTls && !METHOD.test(first.toString('latin1', 0, 20))) return startPiping()
    abandon()
    if (isTls) serveTls(parts, target, socket)
    else parts.serve(socket, target)
  }
  socket.on('readable', look).once('close', abandon)
}

/** Pipes a tunnel that is left alone. */
export function pipeUntouched(outgoing: Outgoing, target: Target, socket: Socket): void {
  pipeSockets(socket, openPlain(outgoing, target, socket))
}

function openPlain(outgoing: Outgoing, target: Target, socket: Socket): Socket | null {
  try {
    const upstream = outgoing.open(target)
    upstream.on('error', () => socket.destroy())
    return upstream
  } catch {
    socket.destroy()
    return null
  }
}

/** Pipes both ways: an end is passed on, a loss ends both. */
export function pipeSockets(socket: Socket, upstream: Socket | null): void {
  if (upstream === null) return
  socket.on('error', () => upstream.destroy()).once('close', () => upstream.destroy())
  upstream.on('error', () => socket.destroy()).once('close', () => socket.destroy())
  countPassed(socket)
  countPassed(upstream)
  socket.pipe(upstream)
  upstream.pipe(socket)
}

/** Ends TLS here, with a certificate for the host. The client may name the host only in its handshake. */
function serveTls({ leaves, serve }: TunnelParts, target: Target, socket: Socket): void {
  let served: Target = { ...target, isSecure: true }
  const isName = (name: string) => /^[\w.-]{1,253}$/.test(name)
  const secure = new TLSSocket(socket, {
    isServer: true,
    ALPNProtocols: ['http/1.1'],
    secureContext: leaves(target.host),
    SNICallback: (name, callback) => {
      if (!isName(name)) return callback(new Error('the name is none of a host'))
      const host = name.toLowerCase()
      // A client that has resolved the name itself connects to the address.
      if (host !== target.host) served = { ...served, host, name: host }
      callback(null, leaves(host))
    },
  })
  secure.on('error', () => secure.destroy())
  socket.once('close', () => secure.destroy())
  secure.once('secure', () => serve(secure, served))
}
