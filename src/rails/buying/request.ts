/** The request of a purchase: what may be asked of a stranger, and how it is asked. */
import { createHash } from 'node:crypto'
import { writeJson } from '../../core/base/json.ts'
import { Failure } from '../../core/failures/failure.ts'
import {
  isPublicFetchError,
  type PublicAnswer,
  type PublicFetch,
  type PublicFetchProblem,
} from '../../providers/public-fetch.ts'
import { readPublicUrl } from '../../providers/public-url.ts'

const MAX_REQUEST_BYTES = 64 * 1024
const MAX_ANSWER_BYTES = 256 * 1024
/** How long a seller is waited for. */
export const SELLER_MS = 30_000

export interface PurchaseRequest {
  /** Without a fragment. */
  readonly url: URL
  readonly method: 'GET' | 'POST'
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>
  readonly body: string | undefined
}

export interface AskedRequest {
  readonly url: string
  readonly method?: 'GET' | 'POST' | undefined
  readonly headers?: Readonly<Record<string, string>> | undefined
  readonly body?: string | Readonly<Record<string, unknown>> | undefined
}

const PASSED_ON = new Set(['accept', 'accept-language', 'content-type'])
const OWN_FIELD = /^x-[a-z0-9-]{1,60}$/
/** Fields by which protocols pay, and by which proxies and this gateway identify requests. */
const WITHHELD = /^x-(payment|forwarded|real-ip|bursar|request-id|api-key$|http-method)/

/**
 * Reads the request of a purchase. @param loopback the sandbox may buy from this machine.
 * @throws Failure `url_not_allowed`, `invalid_request`.
 */
export function readRequest(asked: AskedRequest, { loopback }: { loopback: boolean }): PurchaseRequest {
  const read = readPublicUrl(asked.url, { loopback })
  if ('refused' in read) throw urlNotAllowed(read.refused, read.detail)
  const body = typeof asked.body === 'object' ? writeJson(asked.body) : asked.body
  const method = asked.method ?? 'GET'
  if (body !== undefined && method === 'GET') throw invalid('body', 'is for POST only')
  if (body !== undefined && Buffer.byteLength(body) > MAX_REQUEST_BYTES)
    throw invalid('body', `is over ${MAX_REQUEST_BYTES} bytes`)
  const headers: Record<string, string> = {}
  for (const [given, value] of Object.entries(asked.headers ?? {})) {
    const name = given.toLowerCase()
    if (!PASSED_ON.has(name) && (!OWN_FIELD.test(name) || WITHHELD.test(name)))
      throw invalid(
        `headers.${given.slice(0, 60)}`,
        'is not passed on: Accept, Accept-Language, Content-Type and X-… (not X-Payment…) are',
      )
    if (headers[name] !== undefined) throw invalid(`headers.${given.slice(0, 60)}`, 'occurs twice')
    if (value.length > 1024 || !/^[\t\x20-\x7e]*$/.test(value))
      throw invalid(`headers.${given.slice(0, 60)}`, 'must be at most 1024 visible ASCII characters')
    headers[name] = value
  }
  if (typeof asked.body === 'object') headers['content-type'] ??= 'application/json'
  return { url: read.url, method, headers, body }
}

function urlNotAllowed(reason: string, detail: string): Failure {
  return new Failure('url_not_allowed', detail, {
    reason,
    hint: 'Use the https URL of a public host. Nothing was sent and nothing was paid.',
  })
}

function invalid(path: string, message: string): Failure {
  return new Failure('invalid_request', `${path}: ${message}`, {
    issues: [{ path, message }],
    hint: 'Correct it and send the request again. Nothing was paid.',
  })
}

/**
 * The seller of a URL, whose payee is remembered: its origin. On this machine's loopback, where the sandbox's sellers share an
 * origin, each path is a seller of its own. @property resource origin and path.
 */
export function toSeller({ url }: PurchaseRequest): { readonly seller: string; readonly resource: string } {
  const resource = `${url.origin}${url.pathname}`
  const isLoopback = /^(localhost|127\.0\.0\.1|\[::1\])$/.test(url.hostname)
  return { seller: isLoopback ? resource : url.origin, resource }
}

/** Hex SHA-256 of what is asked: method, URL, header fields and body. */
export function hashRequest({ url, method, headers, body = '' }: PurchaseRequest): string {
  const fields = Object.entries(headers).toSorted(([one], [other]) => (one < other ? -1 : 1))
  return createHash('sha256')
    .update(JSON.stringify([method, url.href, fields, body]))
    .digest('hex')
}

/** An answer, or why there is none. @property sent false: certainly nothing has reached the seller. */
export type Asked =
  | { readonly status: 'answered'; readonly answer: PublicAnswer }
  | { readonly status: PublicFetchProblem; readonly detail: string; readonly sent: boolean }

/** Sends the request once. @param credential header that pays, if it is paid. */
export async function ask(
  request: PurchaseRequest,
  {
    fetchPublic,
    loopback,
    timeoutMs = SELLER_MS,
    credential,
  }: {
    fetchPublic: PublicFetch
    loopback: boolean
    timeoutMs?: number
    credential?: { readonly name: string; readonly value: string }
  },
): Promise<Asked> {
  const { url, method, headers, body } = request
  try {
    const answer = await fetchPublic({
      url,
      method,
      headers: {
        accept: '*/*',
        ...headers,
        ...(credential === undefined ? {} : { [credential.name.toLowerCase()]: credential.value }),
      },
      body,
      maxBytes: MAX_ANSWER_BYTES,
      timeoutMs,
      loopback,
    })
    return { status: 'answered', answer }
  } catch (error) {
    if (!isPublicFetchError(error)) throw error
    return { status: error.problem, detail: error.message, sent: error.sent }
  }
}

/** Asks without paying. @throws Failure `url_not_allowed`, `seller_failed`. */
export async function askUnpaid(
  request: PurchaseRequest,
  options: { fetchPublic: PublicFetch; loopback: boolean },
): Promise<PublicAnswer> {
  const asked = await ask(request, options)
  if (asked.status === 'answered') return asked.answer
  if (asked.status === 'refused-url') throw urlNotAllowed('address', asked.detail)
  throw sellerFailed(`The seller did not answer: ${asked.detail}.`, asked.status)
}

function sellerFailed(detail: string, reason: string): Failure {
  return new Failure('seller_failed', `${detail} Nothing was paid.`, {
    reason,
    // An approved call is not repeated on and on.
    isFinal: true,
    hint: 'Try it later, or tell the owner. Do not buy the same from another seller without being asked to.',
  })
}

/** The seller's challenge prescribes a nonce that another purchase has. */
export function repeatedChallenge(): Failure {
  return sellerFailed('The seller repeated the challenge of another purchase.', 'challenge_repeated')
}

/** Describes an answer outside 2xx and 402 to an unpaid request. */
export function unusableAnswer({ status }: Pick<PublicAnswer, 'status'>): Failure {
  return status >= 300 && status < 400
    ? sellerFailed(`The URL redirects (${status}), and redirects are not followed.`, 'redirect')
    : sellerFailed(`The seller answered ${status}.`, 'status')
}
