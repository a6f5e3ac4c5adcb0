/** A program's request, as the gateway is to make it. */

import { createHash } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { WITHHELD_FIELD } from '../../rails/buying/withheld-fields.ts'
import { dropHopByHop, readPairs } from './fields.ts'
import type { Wanted } from './open-purchases.ts'
import { type Target, writeAuthority, writeOrigin } from './target.ts'

const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE']
/** Fields that are a login, or may be: they are sent with the purchase, and never written to a file. */
const SECRET = /cookie|key|token|auth|secret|session|signature|password|credential/
/** Fields by which a program pays by itself: its payment was refused, and another one is its own affair. */
const PAYMENTS = /^(x-payment|payment-signature)$/
/** Keys that the gateway takes; others are replaced by their hash. */
const PLAIN_KEY = /^[\x21-\x7e]{1,128}$/

/** @returns the code of the problem where the request cannot be bought. */
export function readWanted(
  request: IncomingMessage,
  {
    target,
    path,
    isAbsolute,
    body,
  }: {
    readonly target: Target
    readonly path: string
    readonly isAbsolute: boolean
    readonly body: Buffer | null
  },
): Wanted | { readonly problem: string } {
  const { method = 'GET', headers, rawHeaders } = request
  const authority = writeAuthority(target)
  // The gateway names the host by the URL alone.
  if (!isAbsolute && headers.host?.toLowerCase() !== authority.toLowerCase())
    return { problem: 'url_not_allowed' }
  if (!METHODS.includes(method)) return { problem: 'terms_not_payable' }
  const [, bearer = null] = /^bearer +(\S+) *$/i.exec(headers.authorization ?? '') ?? []
  const paysItself = rawHeaders.some((name, at) => at % 2 === 0 && PAYMENTS.test(name.toLowerCase()))
  if (paysItself || /^payment /i.test(headers.authorization ?? '')) return { problem: 'terms_not_payable' }
  if (headers.authorization !== undefined && bearer === null) return { problem: 'invalid_request' }
  const fields: Record<string, string> = {}
  const secrets: Record<string, string> = {}
  for (const [name, value] of readPairs(dropHopByHop(rawHeaders))) {
    const lower = name.toLowerCase()
    // It asks for another method than the one that would be bought.
    if (lower.startsWith('x-http-method')) return { problem: 'invalid_request' }
    if (WITHHELD_FIELD.test(lower)) continue
    const kept = SECRET.test(lower) ? secrets : fields
    const separator = lower === 'cookie' ? '; ' : ', '
    kept[lower] = kept[lower] === undefined ? value : `${kept[lower]}${separator}${value}`
  }
  return {
    method,
    url: `${writeOrigin(target)}${path}`,
    body,
    key: readKey(headers['bursar-idempotency-key']),
    fields,
    secrets: { fields: secrets, bearer },
  }
}

function readKey(given: string | readonly string[] | undefined): string | null {
  const key = typeof given === 'string' ? given : (given?.join() ?? '')
  if (key === '') return null
  return PLAIN_KEY.test(key) ? key : createHash('sha256').update(key).digest('hex')
}
