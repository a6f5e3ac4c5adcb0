/** WebSockets pass: the request is sent as it came, and then both sides are piped. */
import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { dropHopByHop, readPairs } from './fields.ts'
import type { Outgoing } from './outgoing.ts'
import type { Target } from './target.ts'
import { pipeSockets } from './tunnel.ts'

export function isWebSocket({ headers }: IncomingMessage): boolean {
  return headers.upgrade?.toLowerCase() === 'websocket'
}

/** Passes the request on, with its upgrade. @param head bytes that came after it. */
export function passUpgrade(
  outgoing: Outgoing,
  { request, target, path }: { request: IncomingMessage; target: Target; path: string },
  socket: Socket,
  head: Buffer,
): void {
  const fields = dropHopByHop(request.rawHeaders, ['connection', 'upgrade'])
  const upstream = outgoing.open(target)
  upstream.write(writeHead(request, path, fields))
  if (head.length > 0) upstream.write(head)
  pipeSockets(socket, upstream)
}

/**
 * Takes an upgrade to another protocol (`h2c`) out of a request, which the client then finishes in HTTP/1.1.
 * @returns bytes of the request for the connection to be read again.
 */
export function withoutUpgrade(request: IncomingMessage, head: Buffer): Buffer {
  const fields = dropHopByHop(request.rawHeaders, [
    'transfer-encoding',
    'expect',
    'proxy-authorization',
    'bursar-idempotency-key',
  ])
  return Buffer.concat([Buffer.from(writeHead(request, request.url ?? '/', fields), 'latin1'), head])
}

function writeHead({ method }: IncomingMessage, path: string, fields: readonly string[]): string {
  const lines = readPairs(fields).map(([name, value]) => `${name}: ${value}\r\n`)
  return `${method} ${path} HTTP/1.1\r\n${lines.join('')}\r\n`
}

/** The sockets of node:http servers are always these. */
export function isSocket(stream: Duplex): stream is Socket {
  return 'remoteAddress' in stream
}
