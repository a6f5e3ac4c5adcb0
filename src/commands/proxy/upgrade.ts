/**
 * WebSockets pass: once the origin has agreed, both sides are piped. Where it has not, the connection ends with its answer: what the
 * program would send next may be for another origin, and has the proxy's token.
 */
import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import { type Duplex, pipeline } from 'node:stream'
import { dropHopByHop, readPairs } from './fields.ts'
import type { Outgoing } from './outgoing.ts'
import { chooseHost, type PassedRequest } from './pass.ts'
import { pipeSockets } from './tunnel.ts'

/** A request with a body is none. */
export function isWebSocket({ method, headers }: IncomingMessage): boolean {
  const hasBody = headers['content-length'] !== undefined || headers['transfer-encoding'] !== undefined
  return method === 'GET' && !hasBody && headers.upgrade?.toLowerCase() === 'websocket'
}

/**
 * Passes the request on, with its upgrade. @param head bytes that came after it. @param fail called where no answer comes.
 * @throws TargetRefused
 */
export function passUpgrade(
  outgoing: Outgoing,
  { request, target, path, isAbsolute }: Omit<PassedRequest, 'response'>,
  { socket, head, fail }: { socket: Socket; head: Buffer; fail: (error: unknown) => void },
): void {
  const fields = chooseHost(dropHopByHop(request.rawHeaders, ['connection', 'upgrade']), {
    target,
    isAbsolute,
  })
  const sending = outgoing.request(target, { method: 'GET', path, fields, isUpgrade: true })
  const abandon = () => void sending.destroy()
  socket.once('close', abandon)
  sending.once('upgrade', (answer, upstream: Socket, first: Buffer) => {
    socket.off('close', abandon)
    socket.write(writeAnswer(answer, dropHopByHop(answer.rawHeaders, ['connection', 'upgrade'])), 'latin1')
    if (first.length > 0) socket.write(first)
    if (head.length > 0) upstream.write(head)
    pipeSockets(socket, upstream)
  })
  sending.once('response', (answer) => {
    sending.off('error', fail).on('error', () => socket.destroy())
    const given = [...dropHopByHop(answer.rawHeaders), 'Connection', 'close']
    socket.write(writeAnswer(answer, given), 'latin1')
    pipeline(answer, socket, (error) => {
      if (error) socket.destroy()
    })
  })
  sending.once('error', fail)
  sending.end()
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
  const start = `${request.method} ${request.url} HTTP/1.1`
  return Buffer.concat([Buffer.from(writeHead(start, fields), 'latin1'), head])
}

function writeAnswer({ statusCode, statusMessage }: IncomingMessage, fields: readonly string[]): string {
  return writeHead(`HTTP/1.1 ${statusCode} ${statusMessage}`, fields)
}

function writeHead(start: string, fields: readonly string[]): string {
  const lines = readPairs(fields).map(([name, value]) => `${name}: ${value}\r\n`)
  return `${start}\r\n${lines.join('')}\r\n`
}

/** The sockets of node:http servers are always these. */
export function isSocket(stream: Duplex): stream is Socket {
  return 'remoteAddress' in stream
}
