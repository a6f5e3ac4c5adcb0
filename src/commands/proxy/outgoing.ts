/** Connections of the proxy to origins and to the gateway. The only file of the proxy that opens any. */
import http from 'node:http'
import https from 'node:https'
import { connect, isIP, type Socket } from 'node:net'
import { createSecureContext, rootCertificates } from 'node:tls'
import type { Target, TargetRules } from './target.ts'

/** Shorter than what common servers grant (5 s), so that a connection is rarely closed while being reused. */
const IDLE_MS = 3_000
const MAX_SOCKETS_PER_ORIGIN = 256

export interface OutgoingRequest {
  readonly method: string
  /** Path and query, as the origin sees them. */
  readonly path: string
  /** Pairs in one list. */
  readonly fields: readonly string[]
  readonly isChunked?: boolean
  /** The fields ask for another protocol: it gets a connection of its own. */
  readonly isUpgrade?: boolean
}

export interface Outgoing {
  /** Starts a request; it fails with `TargetRefused` where the rules refuse an address. */
  request(target: Target, request: OutgoingRequest): http.ClientRequest
  /** Opens a raw connection. */
  open(target: Pick<Target, 'host' | 'port'>): Socket
  close(): void
}

/** @param roots PEM of authorities to trust besides the system's. */
export function createOutgoing({
  rules,
  roots,
}: {
  readonly rules: TargetRules
  readonly roots: string
}): Outgoing {
  // One context, because reading the roots takes as long as many handshakes.
  const secureContext = createSecureContext(roots === '' ? {} : { ca: [...rootCertificates, roots] })
  const keeping = {
    keepAlive: true,
    timeout: IDLE_MS,
    maxSockets: MAX_SOCKETS_PER_ORIGIN,
    scheduling: 'lifo',
  } as const
  const plain = new http.Agent(keeping)
  const secure = new https.Agent({ ...keeping, maxCachedSessions: 1_000 })
  const tls = ({ host }: Target) => ({
    secureContext,
    ALPNProtocols: ['http/1.1'],
    // Programs that verify certificates see ours only: NODE_TLS_REJECT_UNAUTHORIZED is not to decide for them.
    rejectUnauthorized: true,
    ...(isIP(host) === 0 ? { servername: host } : {}),
  })
  return {
    request(target, { method, path, fields, isChunked = false, isUpgrade = false }) {
      rules.judge(target)
      const { isSecure, host, port } = target
      const address = {
        host,
        port,
        lookup: rules.lookup(target),
        method,
        path,
        setDefaultHeaders: false,
        setHost: false,
      }
      const outgoing = isSecure
        ? https.request({ ...address, ...tls(target), agent: isUpgrade ? false : secure })
        : http.request({ ...address, agent: isUpgrade ? false : plain })
      for (let at = 0; at + 1 < fields.length; at += 2)
        outgoing.appendHeader(fields[at] ?? '', fields[at + 1] ?? '')
      if (isChunked) outgoing.setHeader('Transfer-Encoding', 'chunked')
      if (!isUpgrade) outgoing.setHeader('Connection', 'keep-alive')
      return outgoing
    },
    open(target) {
      rules.judge(target)
      const { host, port } = target
      return connect({ host, port, lookup: rules.lookup(target), noDelay: true })
    },
    close() {
      plain.destroy()
      secure.destroy()
    },
  }
}

/** @property body null: none. @property onSent called when bytes may have left. */
export interface GatewayRequest {
  readonly url: URL
  readonly method: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: Buffer | null
  readonly timeoutMs: number
  readonly onSent?: () => void
}

/** Sends a request to the gateway. @returns its answer, whose body is not read yet. @throws Error if none comes in time. */
export function requestGateway({
  url,
  method,
  headers,
  body,
  timeoutMs,
  onSent = () => undefined,
}: GatewayRequest): Promise<http.IncomingMessage> {
  return new Promise((resolve, reject) => {
    const { request } = url.protocol === 'https:' ? https : http
    const outgoing = request(url, {
      method,
      headers: { ...headers, ...(body === null ? {} : { 'content-length': String(body.length) }) },
      agent: false,
      timeout: timeoutMs,
    })
    // Nothing leaves before the gateway has shown its certificate.
    const ready = url.protocol === 'https:' ? 'secureConnect' : 'connect'
    outgoing.once('socket', (socket) => socket.once(ready, onSent))
    outgoing.once('timeout', () => outgoing.destroy(new Error(`no answer within ${timeoutMs} ms`)))
    outgoing.once('error', reject)
    outgoing.once('response', resolve)
    outgoing.end(body ?? undefined)
  })
}
