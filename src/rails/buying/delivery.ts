/** The answer of a seller: stored sealed, because it belongs to the buyer, and shown as untrusted text. */
import { createHash } from 'node:crypto'
import { z } from 'zod'
import { seal, unseal } from '../../core/base/seal.ts'
import { UNTRUSTED_TEXT_KEY, untrustedTextOrNull } from '../../core/base/untrusted-text.ts'
import type { PublicAnswer } from '../../providers/public-fetch.ts'

export const deliveryView = z.strictObject({
  status: z.int().describe('HTTP status.'),
  contentType: untrustedTextOrNull('Content type; null without one.'),
  headers: z
    .record(z.string(), z.string())
    .meta({ description: 'Header fields.', [UNTRUSTED_TEXT_KEY]: true }),
  body: untrustedTextOrNull('Text; null for other bytes.'),
  bodyBase64: untrustedTextOrNull('Bytes that are no text, base64; null for text.'),
  truncated: z.boolean().describe('True if it was longer than 256 KiB.'),
  bytes: z.int().describe('Length that was kept.'),
})
deliveryView.register(z.globalRegistry, { id: 'Delivery' })

export type Delivery = z.output<typeof deliveryView>

const PURPOSE = 'purchase delivery'

/** Fields that are passed on; the others concern the connection, cookies or payments. */
const SHOWN =
  /^(content-(type|language|disposition)|date|etag|expires|last-modified|link|location|cache-control|x-(?!payment|powered-by)[a-z0-9-]+)$/
const MAX_FIELDS = 40
const MAX_FIELD_LENGTH = 1024

export function viewAnswer({ status, headers, body, truncated, bytes }: PublicAnswer): Delivery {
  const text = asText(body)
  const shown = headers
    .filter(([name]) => SHOWN.test(name))
    .slice(0, MAX_FIELDS)
    .map(([name, value]) => [name, value.slice(0, MAX_FIELD_LENGTH)] as const)
  return {
    status,
    contentType: headers.find(([name]) => name === 'content-type')?.[1].slice(0, 200) ?? null,
    headers: Object.fromEntries(shown),
    body: text,
    bodyBase64: text === null ? Buffer.from(body).toString('base64') : null,
    truncated,
    bytes,
  }
}

/** @returns null for bytes that are no UTF-8, but for a character that was cut off. */
function asText(body: Uint8Array): string | null {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(body, { stream: true })
  } catch {
    return null
  }
}

/** @property hash hex SHA-256 of the body. */
export function sealAnswer(
  dataKey: Uint8Array,
  purchaseId: string,
  answer: PublicAnswer,
): { readonly delivered: Uint8Array; readonly hash: string } {
  const delivered = seal(dataKey, { purpose: PURPOSE, owner: purchaseId }, JSON.stringify(viewAnswer(answer)))
  return { delivered, hash: createHash('sha256').update(answer.body).digest('hex') }
}

export function unsealAnswer(dataKey: Uint8Array, purchaseId: string, delivered: Uint8Array): Delivery {
  return deliveryView.parse(JSON.parse(unseal(dataKey, { purpose: PURPOSE, owner: purchaseId }, delivered)))
}
