/** Access to the raw request, which node-server has and Hono's URL no longer shows. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Context as HonoContext } from 'hono'
import { parseJson } from '../../core/base/json.ts'
import type { Principal } from '../../core/base/principal.ts'
import { Failure } from '../../core/failures/failure.ts'
import type { RateReading } from '../../kernel/gates/rate.ts'
import type { RawRequest } from '../../people/identity/keys/request-signature.ts'
import type { IssuedSession } from '../../people/identity/sessions/sessions.ts'
import { bodyTooLarge } from './problem.ts'

/** The authenticated caller. @property refusal why its credential was rejected; ignored on public routes. */
export interface Caller {
  readonly principal: Principal
  readonly renewed: IssuedSession | null
  readonly refusal: Failure | null
}

/** Request variables set by the middlewares. */
export interface Variables {
  requestId: string
  now: Date
  clientAddress: string
  body: Uint8Array
  caller: Caller
  /** Allowed methods of the path, after a 405. */
  allow?: string
  /** Id of the policy decision, if there is one. */
  decisionId?: string
  /** Windows that the request was counted in. */
  counted?: readonly RateReading[]
  /** Result of the last rate-limit check. */
  reading?: RateReading
}

export interface Env {
  Bindings: { incoming?: IncomingMessage; outgoing?: ServerResponse }
  Variables: Variables
}

export type HttpContext = HonoContext<Env>

export const mutatingMethods: ReadonlySet<string> = new Set(['POST', 'PUT', 'PATCH', 'DELETE'])

/** Path and query exactly as on the request line; Hono's URL is normalized and built from Host. */
export function readRawTarget(c: HttpContext): string {
  const target = c.env.incoming?.url
  if (target !== undefined) return target
  const { pathname, search } = new URL(c.req.url)
  return pathname + search
}

/** The raw request for signature verification. */
export function readRawRequest(c: HttpContext): RawRequest {
  const lines = c.env.incoming?.rawHeaders
  const fields =
    lines === undefined
      ? [...c.req.raw.headers].map(([name, value]) => ({ name, value }))
      : lines.flatMap((name, at) => (at % 2 === 0 ? [{ name, value: lines[at + 1] ?? '' }] : []))
  return { method: c.req.method, target: readRawTarget(c), fields, body: c.get('body') }
}

/** Reads the whole body. @throws Failure `body_too_large` before more than the limit is buffered. */
export async function readBody(c: HttpContext, maxBytes: number): Promise<Uint8Array> {
  if (Number(c.req.header('content-length') ?? 0) > maxBytes) throw bodyTooLarge(maxBytes)
  if (!mutatingMethods.has(c.req.method)) return new Uint8Array()
  // Accessing the body of the web Request makes node-server build a full one. A refused request keeps its connection for the answer.
  const body = c.env?.incoming?.iterator({ destroyOnReturn: false }) ?? c.req.raw.body
  if (body === null) return new Uint8Array()
  const parts: Uint8Array[] = []
  let length = 0
  for await (const part of readWhole(body)) {
    length += part.byteLength
    if (length > maxBytes) throw bodyTooLarge(maxBytes)
    parts.push(part)
  }
  return Buffer.concat(parts)
}

/** @throws Failure `invalid_request` when the connection closes within the body. */
async function* readWhole(body: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  try {
    yield* body
  } catch (cause) {
    throw new Failure(
      'invalid_request',
      'The connection closed before the whole body arrived.',
      {},
      { cause },
    )
  }
}

/**
 * Rejects requests that a proxy and the gateway could interpret differently: several Host headers, or dot segments in
 * the path. A proxy may have authorized the request under the other interpretation.
 * @throws Failure `invalid_request`.
 */
export function requirePlainRequest(c: HttpContext): void {
  const lines = c.env.incoming?.rawHeaders ?? []
  const hosts = lines.filter((name, at) => at % 2 === 0 && name.toLowerCase() === 'host')
  if (hosts.length > 1) throw new Failure('invalid_request', 'The request has more than one Host header.')
  const [path = ''] = readRawTarget(c).split(/[?#]/, 1)
  if (/(?:^|\/|%2f)(?:\.|%2e){1,2}(?:\/|%2f|$)/i.test(path))
    throw new Failure('invalid_request', 'The path has dot segments.', {
      hint: 'Send the resolved path, without "." and "..".',
    })
}

/** Parses the body as JSON. @throws Failure `unsupported_media_type`, `invalid_request`. */
export function parseJsonBody(c: HttpContext): unknown {
  const encoding = c.req.header('content-encoding') ?? 'identity'
  if (encoding !== 'identity')
    throw new Failure('unsupported_media_type', 'The body has a Content-Encoding.', {
      hint: 'Send it without Content-Encoding.',
    })
  const type = c.req.header('content-type')
  const body = c.get('body')
  if (body.length === 0 && type === undefined) return {}
  if (!/^application\/json\s*(;\s*charset=utf-8\s*)?$/i.test(type ?? ''))
    throw new Failure(
      'unsupported_media_type',
      type === undefined ? 'The body has no Content-Type.' : 'The Content-Type is not application/json.',
      {
        hint: 'Send "Content-Type: application/json".',
      },
    )
  if (body.length === 0) return {}
  try {
    return parseJson(new TextDecoder('utf-8', { fatal: true }).decode(body))
  } catch (cause) {
    const where =
      cause instanceof SyntaxError ? cause.message.replace(/\s+/g, ' ').slice(0, 120) : 'it is not UTF-8'
    throw new Failure('invalid_request', `The body is not valid JSON: ${where}.`, {
      issues: [{ path: '', message: 'not valid JSON' }],
      hint: 'Send one JSON object: names and texts in double quotes, no comma after the last member, no comments.',
    })
  }
}
