/** The answer of a seller: stored sealed, because it belongs to the buyer, and shown as untrusted text. */
import { z } from 'zod'
import { seal, unseal } from '../../core/base/seal.ts'
import { UNTRUSTED_TEXT_KEY, untrustedTextOrNull } from '../../core/base/untrusted-text.ts'
import type { PublicAnswer } from '../../providers/public-fetch.ts'
import type { AnswerWriter, StoredParts } from './answer.ts'

export const deliveryView = z.strictObject({
  status: z.int().describe('HTTP status.'),
  contentType: untrustedTextOrNull('Content type; null without one.'),
  headers: z
    .record(z.string(), z.string())
    .meta({ description: 'Header fields.', [UNTRUSTED_TEXT_KEY]: true }),
  body: untrustedTextOrNull('Text; null for other bytes.'),
  bodyBase64: untrustedTextOrNull('Bytes that are no text, base64; null for text.'),
  truncated: z.boolean().describe('True if the body here is only its start.'),
  complete: z.boolean().describe('False if it was cut off.'),
  bytes: z.int().describe('Length received, up to 32 MiB.'),
})
deliveryView.register(z.globalRegistry, { id: 'Delivery' })

export type Delivery = z.output<typeof deliveryView>

/** An answer as it is stored. Before answers had parts, a truncated one was cut off. */
const storedDelivery = deliveryView.extend({
  complete: z.boolean().optional(),
  stored: z.strictObject({ receipt: z.string(), parts: z.int() }).nullable().default(null),
})

const PURPOSE = 'purchase delivery'

/** Fields that are passed on; the others concern the connection, cookies or payments. */
const SHOWN =
  /^(content-(type|language|disposition)|date|etag|expires|last-modified|link|location|cache-control|x-(?!payment|powered-by)[a-z0-9-]+)$/
const MAX_FIELDS = 40
const MAX_FIELD_LENGTH = 1024

/** Views an answer of which no more than its body is there. */
export function viewAnswer(answer: PublicAnswer): Delivery {
  return viewDelivery(answer, !answer.truncated)
}

/** @param isComplete false if it was cut off. */
function viewDelivery({ status, headers, body, bytes }: PublicAnswer, isComplete: boolean): Delivery {
  const truncated = !isComplete || bytes > body.length
  const text = asText(body, truncated)
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
    complete: isComplete,
    bytes,
  }
}

/** @returns null for bytes that are no UTF-8, but for a character that was cut off. */
function asText(body: Uint8Array, isCut: boolean): string | null {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(body, { stream: isCut })
  } catch {
    return null
  }
}

/** True if the text of an answer says its bytes: a decoder leaves out a byte order mark. */
function isExact({ body }: PublicAnswer): boolean {
  return !(body[0] === 0xef && body[1] === 0xbb && body[2] === 0xbf)
}

/** Ends the receipt of a whole answer. @property hash hex SHA-256 of the body. */
export async function sealAnswer(
  dataKey: Uint8Array,
  purchaseId: string,
  { answer, writer }: { answer: PublicAnswer; writer: Pick<AnswerWriter, 'finish'> },
): Promise<{ readonly delivered: Uint8Array; readonly hash: string }> {
  const { hash, stored } = await writer.finish(!isExact(answer))
  const view = { ...viewDelivery(answer, !answer.truncated), stored }
  return { delivered: seal(dataKey, { purpose: PURPOSE, owner: purchaseId }, JSON.stringify(view)), hash }
}

/** An answer and where the parts of its body are; null: the body is in the view. */
export interface KeptAnswer {
  readonly view: Delivery
  readonly stored: StoredParts | null
}

export function unsealAnswer(dataKey: Uint8Array, purchaseId: string, delivered: Uint8Array): KeptAnswer {
  const text = unseal(dataKey, { purpose: PURPOSE, owner: purchaseId }, delivered)
  const { stored, complete, ...view } = storedDelivery.parse(JSON.parse(text))
  return { view: { ...view, complete: complete ?? !view.truncated }, stored }
}
