/**
 * The HTTP server below the app: client timeouts, and problem responses for malformed requests, which Node would
 * answer without a body.
 */
import { createServer, type Server, type ServerResponse, STATUS_CODES } from 'node:http'
import type { Duplex } from 'node:stream'
import { Failure } from '../../core/failures/failure.ts'

/** Client timeouts in milliseconds. */
export interface ClientTimeouts {
  readonly headersMs: number
  readonly requestMs: number
  /**
   * Keep-alive of idle connections. Longer than that of clients and load balancers, so that a connection is never
   * closed while being reused.
   */
  readonly idleMs: number
  /** Interval of the timeout check. */
  readonly checkMs: number
}

const defaultTimeouts: ClientTimeouts = {
  headersMs: 10_000,
  requestMs: 30_000,
  idleMs: 65_000,
  checkMs: 1_000,
}

/** Creates a server without starting it. @param newRequestId creates the id of a refused request. */
export function createGatewayServer(newRequestId: () => string, given: Partial<ClientTimeouts> = {}): Server {
  const { headersMs, requestMs, idleMs, checkMs } = { ...defaultTimeouts, ...given }
  const server = createServer({
    headersTimeout: headersMs,
    requestTimeout: requestMs,
    keepAliveTimeout: idleMs,
    connectionsCheckingInterval: checkMs,
    // The app rejects requests without a Host, with a body.
    requireHostHeader: false,
  })
  const pendingResponses = new WeakMap<Duplex, ServerResponse>()
  server.on('request', (request, response) => pendingResponses.set(request.socket, response))
  server.on('clientError', (error: NodeJS.ErrnoException, socket) => {
    const pendingResponse = pendingResponses.get(socket)
    const isResponding = pendingResponse?.headersSent === true && !pendingResponse.writableFinished
    if (error.code === 'ECONNRESET' || !socket.writable || isResponding) socket.destroy()
    else socket.end(serializeResponse(toFailure(error.code), newRequestId()), () => socket.destroy())
  })
  server.on('connect', (_request, socket: Duplex) => {
    const refusal = new Failure('method_not_allowed', 'CONNECT is not supported: this server is not a proxy.')
    socket.on('error', () => socket.destroy())
    socket.end(serializeResponse(refusal, newRequestId()))
  })
  // Unknown expectations are ignored. @see https://www.rfc-editor.org/rfc/rfc9110#section-10.1.1
  server.on('checkExpectation', (request, response) => server.emit('request', request, response))
  return server
}

/** Creates the response for requests whose target or Host cannot be parsed as a URL. */
export function unreadableRequest(newRequestId: () => string): () => Response {
  return () => {
    const refusal = new Failure('invalid_request', 'The request target or Host header is not a valid URL.')
    const { body, headers } = buildProblem(refusal, newRequestId())
    return new Response(body, { status: refusal.status, headers })
  }
}

function toFailure(code: string | undefined): Failure {
  switch (code) {
    case 'HPE_HEADER_OVERFLOW':
      return new Failure('headers_too_large', 'The headers are over 16 KiB.', {
        hint: 'Send fewer or shorter headers and cookies, or a shorter target.',
      })
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return new Failure('request_timeout', 'The request did not arrive in time and was not processed.')
    case 'HPE_CHUNK_EXTENSIONS_OVERFLOW':
      return new Failure('body_too_large', 'The chunk extensions of the body are too large.')
    default:
      return new Failure('invalid_request', 'This is not a valid HTTP/1.1 request.')
  }
}

function buildProblem(refusal: Failure, requestId: string) {
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

/** Serializes a response for a socket that Node's parser has abandoned. */
function serializeResponse(refusal: Failure, requestId: string): string {
  const { body, headers } = buildProblem(refusal, requestId)
  return [
    `HTTP/1.1 ${refusal.status} ${STATUS_CODES[refusal.status] ?? 'Refused'}`,
    ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
    `Content-Length: ${Buffer.byteLength(body)}`,
    'Connection: close',
    '',
    body,
  ].join('\r\n')
}
