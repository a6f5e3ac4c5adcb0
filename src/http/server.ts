/**
 * The server below the app: how long a request may take to arrive, and what is told of one that is none. Node itself would
 * answer such without a body.
 */
import { createServer, type Server, type ServerResponse, STATUS_CODES } from 'node:http'
import type { Duplex } from 'node:stream'
import { Failure } from '../failures/failure.ts'

/** How long a client may take, in milliseconds. */
export interface ClientTimeouts {
  readonly headersMs: number
  readonly requestMs: number
  /** How long an idle connection is kept: longer than clients and balancers keep theirs, so that none is closed as it is used. */
  readonly idleMs: number
  /** How often it is looked at. */
  readonly checkMs: number
}

const patience: ClientTimeouts = { headersMs: 10_000, requestMs: 30_000, idleMs: 65_000, checkMs: 1_000 }

/** A server that does not listen yet. @param newRequestId names a refusal. */
export function createGatewayServer(newRequestId: () => string, given: Partial<ClientTimeouts> = {}): Server {
  const { headersMs, requestMs, idleMs, checkMs } = { ...patience, ...given }
  const server = createServer({
    headersTimeout: headersMs,
    requestTimeout: requestMs,
    keepAliveTimeout: idleMs,
    connectionsCheckingInterval: checkMs,
    // A request without a Host is refused with a body, by the app.
    requireHostHeader: false,
  })
  const answering = new WeakMap<Duplex, ServerResponse>()
  server.on('request', (request, response) => answering.set(request.socket, response))
  server.on('clientError', (error: NodeJS.ErrnoException, socket) => {
    const begun = answering.get(socket)
    const isAnswered = begun?.headersSent === true && !begun.writableFinished
    if (error.code === 'ECONNRESET' || !socket.writable || isAnswered) socket.destroy()
    else socket.end(rawAnswerOf(refusalOf(error.code), newRequestId()), () => socket.destroy())
  })
  server.on('connect', (_request, socket: Duplex) => {
    const refusal = new Failure('method_not_allowed', 'CONNECT is not possible: this is no proxy.')
    socket.on('error', () => socket.destroy())
    socket.end(rawAnswerOf(refusal, newRequestId()))
  })
  // What a client expects beyond 100-continue is its own matter. @see https://www.rfc-editor.org/rfc/rfc9110#section-10.1.1
  server.on('checkExpectation', (request, response) => server.emit('request', request, response))
  return server
}

/** What is told of a request whose target or Host cannot be made a URL of. */
export function unreadableRequest(newRequestId: () => string): () => Response {
  return () => {
    const refusal = new Failure('invalid_request', 'The request’s target or its Host cannot be read.')
    const { body, headers } = problemOf(refusal, newRequestId())
    return new Response(body, { status: refusal.status, headers })
  }
}

function refusalOf(code: string | undefined): Failure {
  switch (code) {
    case 'HPE_HEADER_OVERFLOW':
      return new Failure('headers_too_large', 'The headers are over 16 KiB.', {
        hint: 'Send fewer or shorter headers and cookies, or a shorter target.',
      })
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return new Failure('request_timeout', 'The request did not arrive in time; nothing was done.')
    case 'HPE_CHUNK_EXTENSIONS_OVERFLOW':
      return new Failure('body_too_large', 'The extensions of the body’s chunks are too large.')
    default:
      return new Failure('invalid_request', 'This is not a valid HTTP/1.1 request.')
  }
}

function problemOf(refusal: Failure, requestId: string) {
  return {
    body: JSON.stringify({ ...refusal.toProblem(), instance: '*', requestId }),
    headers: {
      'Content-Type': 'application/problem+json',
      'Cache-Control': 'no-store',
      'X-Content-Type-Options': 'nosniff',
      'X-Request-Id': requestId,
    },
  }
}

/** An answer as it goes over a socket that the parser has given up. */
function rawAnswerOf(refusal: Failure, requestId: string): string {
  const { body, headers } = problemOf(refusal, requestId)
  return [
    `HTTP/1.1 ${refusal.status} ${STATUS_CODES[refusal.status] ?? 'Refused'}`,
    ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
    `Content-Length: ${Buffer.byteLength(body)}`,
    'Connection: close',
    '',
    body,
  ].join('\r\n')
}
