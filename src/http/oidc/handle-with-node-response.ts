/** Hands a request that has passed the way in to a server that knows Node's requests alone, such as `oidc-provider`. */
import { IncomingMessage, type ServerResponse } from 'node:http'
import { RESPONSE_ALREADY_SENT } from '@hono/node-server/utils/response'
import { type HttpContext, rawTargetOf } from '../request.ts'
import { setSecurityHeaders } from '../security-headers.ts'

/** A listener as `node:http` has it, done when it has answered. */
export type NodeListener = (request: IncomingMessage, response: ServerResponse) => Promise<void>

/** Node's own pair of a request. @throws Error where the app does not run on a Node server. */
export function nodePairOf(c: HttpContext): { incoming: IncomingMessage; outgoing: ServerResponse } {
  const { incoming, outgoing } = c.env
  if (incoming === undefined || outgoing === undefined)
    throw new Error('this path needs a server of node:http')
  return { incoming, outgoing }
}

/**
 * Lets a listener answer. @param base the URL that it is served at: what it says of itself is made of it, whatever Host says.
 * @param target what is asked of it, where that is not the request's own path.
 */
export async function handleWithNodeResponse(
  c: HttpContext,
  listener: NodeListener,
  base: URL,
  target = rawTargetOf(c),
): Promise<Response> {
  const { incoming, outgoing } = nodePairOf(c)
  // Afterwards is too late: the answer has left.
  outgoing.setHeader('X-Request-Id', c.get('requestId'))
  setSecurityHeaders(c, (name, value) => void outgoing.setHeader(name, value), {
    origin: base.origin,
    isBefore: true,
  })
  outgoing.setHeader('Cache-Control', 'no-store')
  await listener(readAgain(c, incoming, { base, target }), outgoing)
  return RESPONSE_ALREADY_SENT.clone()
}

/** The request with its body, which the way in has read, and with the path below the base. */
function readAgain(
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
      // The body may be another one than arrived.
      ...(incoming.headers['content-length'] === undefined
        ? {}
        : { 'content-length': String(body.byteLength) }),
      host: base.host,
      'x-forwarded-host': base.host,
      'x-forwarded-proto': base.protocol.slice(0, -1),
    },
    rawHeaders: incoming.rawHeaders,
    // All of it is here: else Node takes it for cut off, and the connection with it.
    complete: true,
  })
  request.push(body)
  request.push(null)
  return request
}
