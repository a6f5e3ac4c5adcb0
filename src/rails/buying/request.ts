/** The request of a purchase: what may be asked of a stranger, and how it is asked. */
import { createHash } from 'node:crypto'
import { writeJson } from '../../core/base/json.ts'
import { Failure } from '../../core/failures/failure.ts'
import {
  isPublicFetchError,
  type PublicAnswer,
  type PublicFetch,
  type PublicFetchProblem,
  type PublicRequest,
} from '../../providers/public-fetch.ts'
import { readPublicUrl } from '../../providers/public-url.ts'
import { PART_BYTES } from './answer.ts'
import { isSecretField } from './secrets.ts'
import type { methods } from './terms.ts'
import { WITHHELD_FIELD } from './withheld-fields.ts'

const MAX_REQUEST_BYTES = 4 * 1024 * 1024
/** Of all header fields: what common servers take. */
const MAX_FIELDS_LENGTH = 16_384
/** How long a seller is waited for. */
export const SELLER_MS = 30_000

export interface PurchaseRequest {
  /** Without a fragment. */
  readonly url: URL
  readonly method: Method
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>
  /** Fields that are sent and never kept, in lower case: no hash covers them, since a new login is no new purchase. */
  readonly secrets: Readonly<Record<string, string>>
  readonly body: string | Uint8Array | undefined
}

type Method = (typeof methods)[number]

export interface AskedRequest {
  readonly url: string
  readonly method?: Method | undefined
  readonly headers?: Readonly<Record<string, string>> | undefined
  readonly authorization?: { readonly token: string } | undefined
  readonly body?: string | Readonly<Record<string, unknown>> | undefined
  readonly bodyBase64?: string | undefined
}

const FIELD_NAME = /^[a-z0-9!#$%&'*+.^_`|~-]{1,64}$/
const FIELD_VALUE = /^[\t\x20-\x7e\x80-\xff]*$/

/**
 * Reads the request of a purchase. @param loopback the sandbox may buy from this machine.
 * @throws Failure `url_not_allowed`, `invalid_request`.
 */
export function readRequest(asked: AskedRequest, { loopback }: { loopback: boolean }): PurchaseRequest {
  const read = readPublicUrl(asked.url, { loopback })
  if ('refused' in read) throw urlNotAllowed(read.refused, read.detail)
  const method = asked.method ?? 'GET'
  const body = readRequestBody(asked)
  if (body !== undefined && method === 'GET') throw invalid('body', 'is not for GET')
  const headers: Record<string, string> = {}
  const secrets: Record<string, string> = {}
  for (const [given, value] of Object.entries(asked.headers ?? {})) {
    const name = given.toLowerCase()
    const path = `headers.${given.slice(0, 60)}`
    if (!FIELD_NAME.test(name) || WITHHELD_FIELD.test(name))
      throw invalid(
        path,
        name === 'authorization'
          ? 'is not passed on: send the token of your login as `authorization`'
          : 'is not passed on: fields of connections, proxies, payments and this gateway are not',
      )
    const fields = isSecretField(name) ? secrets : headers
    if (fields[name] !== undefined) throw invalid(path, 'occurs twice')
    if (!FIELD_VALUE.test(value)) throw invalid(path, 'must be visible characters of ISO 8859-1')
    fields[name] = value
  }
  const { token } = asked.authorization ?? {}
  if (token !== undefined) {
    if (!/^[\x21-\x7e]+$/.test(token))
      throw invalid('authorization.token', 'must be visible ASCII characters')
    secrets.authorization = `Bearer ${token}`
  }
  const length = [headers, secrets].flatMap(Object.entries).flat().join('').length
  if (length > MAX_FIELDS_LENGTH)
    throw invalid('headers', `are over ${MAX_FIELDS_LENGTH} characters together`)
  if (typeof asked.body === 'object') headers['content-type'] ??= 'application/json'
  return { url: read.url, method, headers, secrets, body }
}

/** @throws Failure `invalid_request`. */
function readRequestBody({ body, bodyBase64 }: AskedRequest): string | Uint8Array | undefined {
  if (bodyBase64 === undefined) {
    const text = typeof body === 'object' ? writeJson(body) : body
    if (text !== undefined && Buffer.byteLength(text) > MAX_REQUEST_BYTES)
      throw invalid('body', `is over ${MAX_REQUEST_BYTES} bytes`)
    return text
  }
  if (body !== undefined) throw invalid('bodyBase64', 'is instead of body')
  const bytes = Buffer.from(bodyBase64, 'base64')
  if (bytes.toString('base64') !== bodyBase64) throw invalid('bodyBase64', 'must be base64 with padding')
  if (bytes.length > MAX_REQUEST_BYTES) throw invalid('bodyBase64', `is over ${MAX_REQUEST_BYTES} bytes`)
  return bytes
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
export function toSeller({ url }: Pick<PurchaseRequest, 'url'>): {
  readonly seller: string
  readonly resource: string
} {
  const resource = `${url.origin}${url.pathname}`
  const isLoopback = /^(localhost|127\.0\.0\.1|\[::1\])$/.test(url.hostname)
  return { seller: isLoopback ? resource : url.origin, resource }
}

/** Hex SHA-256 of what is asked: method, URL, header fields and body, without what is secret. */
export function hashRequest({ url, method, headers, body = '' }: PurchaseRequest): string {
  const fields = Object.entries(headers).toSorted(([one], [other]) => (one < other ? -1 : 1))
  const said = typeof body === 'string' ? body : { base64: Buffer.from(body).toString('base64') }
  return createHash('sha256')
    .update(JSON.stringify([method, url.href, fields, said]))
    .digest('hex')
}

/** An answer, or why there is none. @property sent false: certainly nothing has reached the seller. */
export type Asked =
  | { readonly status: 'answered'; readonly answer: PublicAnswer }
  | { readonly status: PublicFetchProblem; readonly detail: string; readonly sent: boolean }

/** Sends the request once. @param credential header that pays, if it is paid. @param sink receives a long body. */
export async function ask(
  request: PurchaseRequest,
  {
    fetchPublic,
    loopback,
    timeoutMs = SELLER_MS,
    credential,
    sink,
  }: {
    fetchPublic: PublicFetch
    loopback: boolean
    timeoutMs?: number
    credential?: { readonly name: string; readonly value: string }
    sink?: NonNullable<PublicRequest['sink']>
  },
): Promise<Asked> {
  const { url, method, headers, secrets, body } = request
  try {
    const answer = await fetchPublic({
      url,
      method,
      headers: {
        accept: '*/*',
        ...headers,
        ...secrets,
        ...(credential === undefined ? {} : { [credential.name.toLowerCase()]: credential.value }),
      },
      body,
      maxBytes: PART_BYTES,
      timeoutMs,
      loopback,
      identify: true,
      ...(sink === undefined ? {} : { sink }),
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

/** The seller wants other terms at each look. */
export function termsChanged(): Failure {
  return new Failure(
    'terms_not_payable',
    'The seller changed its terms while it was being paid. The price of an earlier purchase stays held until that ends.',
    {
      ...{ reason: 'terms_changed', offers: [], isFinal: true },
      hint: 'Tell the owner; a new attempt needs a new idempotency key.',
    },
  )
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
