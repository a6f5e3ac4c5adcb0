/** Passes an authenticated request to a server that needs Node's request and response, such as `oidc-provider`. */
import { IncomingMessage, type ServerResponse } from 'node:http'
import { RESPONSE_ALREADY_SENT } from '@hono/node-server/utils/response'
import { type HttpContext, readRawTarget } from '../request.ts'
import { setSecurityHeaders } from '../security-headers.ts'

/** A `node:http` listener whose promise resolves once it has responded. */
export type NodeListener = (request: IncomingMessage, response: ServerResponse) => Promise<void>

/** Returns Node's request and response. @throws Error when the app does not run on a Node server. */
export function requireNodePair(c: HttpContext): { incoming: IncomingMessage; outgoing: ServerResponse } {
  const { incoming, outgoing } = c.env
  if (incoming === undefined || outgoing === undefined) throw new Error('this path needs a node:http server')
  return { incoming, outgoing }
}

/**
 * @param base public URL of the listener; it builds its own URLs from it, whatever the Host header says.
 * @param target request target, if different from the request's own.
 */
export async function handleWithNodeResponse(
  c: HttpContext,
  listener: NodeListener,
  base: URL,
  target = readRawTarget(c),
): Promise<Response> {
  const { incoming, outgoing } = requireNodePair(c)
  // The listener sends the response itself, so headers must be set first.
  outgoing.setHeader('X-Request-Id', c.get('requestId'))
  setSecurityHeaders(c, (name, value) => void outgoing.setHeader(name, value), {
    origin: base.origin,
    isBefore: true,
  })
  outgoing.setHeader('Cache-Control', 'no-store')
  await listener(rebuildRequest(c, incoming, { base, target }), outgoing)
  return RESPONSE_ALREADY_SENT.clone()
}

/** Rebuilds the Node request, because its body has been read and its path must be relative to the base. */
function rebuildRequest(
  c: HttpContext,
  incoming: IncomingMessage,
  { base, target }: { base: URL; target: string },
): IncomingMessage {
  const body = c.get('body')
  const request = new IncomingMessage(incoming.socket)
  Object.assign(request, {
    method: c.req.method,
    url: target.slice(base.pathname.length) || '/',
    originalUrl: target,
    httpVersion: incoming.httpVersion,
    httpVersionMajor: incoming.httpVersionMajor,
    httpVersionMinor: incoming.httpVersionMinor,
    headers: {
      ...incoming.headers,
      // The body may have been rewritten.
      ...(incoming.headers['content-length'] === undefined
        ? {}
        : { 'content-length': String(body.byteLength) }),
      host: base.host,
      'x-forwarded-host': base.host,
      'x-forwarded-proto': base.protocol.slice(0, -1),
    },
    rawHeaders: incoming.rawHeaders,
    // Marks the message as complete; otherwise Node treats it as aborted and closes the connection.
    complete: true,
  })
  request.push(body)
  request.push(null)
  return request
}
