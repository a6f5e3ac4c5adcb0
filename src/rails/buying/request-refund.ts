/** Asks a seller for a refund, where its terms say that it takes such requests. What it answers books nothing. */
import { z } from 'zod'
import { writeJson } from '../../core/base/json.ts'
import { isPublicFetchError, type PublicFetch } from '../../providers/public-fetch.ts'
import { readPublicUrl } from '../../providers/public-url.ts'
import type { Purchase } from './store.ts'

const TIMEOUT_MS = 15_000
/** Of the answer nothing but the status counts. */
const MAX_BYTES = 4_096

const declaring = z.looseObject({
  accepted: z.looseObject({ extra: z.looseObject({ refundUrl: z.string() }) }),
})

/** The URL that a seller's terms name for refunds; null without one, and for one of another origin than what was bought. */
export function findRefundUrl(
  { offer, url }: Pick<Purchase, 'offer' | 'url'>,
  { loopback }: { loopback: boolean },
): URL | null {
  const read = declaring.safeParse(offer)
  if (!read.success) return null
  const { refundUrl } = read.data.accepted.extra
  if (!URL.canParse(refundUrl, url)) return null
  const declared = readPublicUrl(new URL(refundUrl, url).href, { loopback })
  return 'url' in declared && declared.url.origin === new URL(url).origin ? declared.url : null
}

/** @property name of the request: the seller may take it for the same one when it comes again. @property evidence JWS. */
export interface RefundRequest {
  readonly name: string
  readonly purchaseId: string
  readonly evidence: string
  readonly reason: string
}

/** `accepted`: it has the request. `refused`: it says no, for good. `unclear`: it may not have it. */
export interface RefundAnswer {
  readonly outcome: 'accepted' | 'refused' | 'unclear'
  readonly said: string
}

export async function requestRefund(
  { fetchPublic, loopback }: { fetchPublic: PublicFetch; loopback: boolean },
  url: URL,
  { name, purchaseId, evidence, reason }: RefundRequest,
): Promise<RefundAnswer> {
  try {
    const { status } = await fetchPublic({
      url,
      method: 'POST',
      headers: { accept: '*/*', 'content-type': 'application/json', 'idempotency-key': name },
      body: writeJson({ purchase: purchaseId, evidence, reason }),
      maxBytes: MAX_BYTES,
      timeoutMs: TIMEOUT_MS,
      loopback,
    })
    const said = `HTTP ${status}`
    if (status >= 200 && status < 300) return { outcome: 'accepted', said }
    const isFinal = status >= 300 && status < 500 && !MAY_PASS.has(status)
    return { outcome: isFinal ? 'refused' : 'unclear', said }
  } catch (error) {
    if (!isPublicFetchError(error)) throw error
    return { outcome: error.problem === 'refused-url' ? 'refused' : 'unclear', said: error.problem }
  }
}

/** Request timeout, too early, too many requests. */
const MAY_PASS = new Set([408, 425, 429])
