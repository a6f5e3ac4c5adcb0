/** Requests to sellers to give money back, with the signed evidence of the purchase. */
import type { Chains } from '../../providers/chain/chains.ts'
import { buildEvidence, EVIDENCE_TYPE } from '../../rails/buying/evidence-document.ts'
import type { PayingParts } from '../../rails/buying/pay-purchase.ts'
import { type RefundAnswer, requestRefund } from '../../rails/buying/request-refund.ts'
import type { Purchase } from '../../rails/buying/store.ts'
import type { Recourse } from './store.ts'

/** @property signDocument signs the evidence for the seller. */
export interface PurchaseRecourseParts extends PayingParts {
  readonly chains: Chains
  readonly signDocument: (document: { type: string; document: unknown }) => Promise<string>
}

/** How often a seller that does not answer is asked. */
export const MAX_REQUESTS = 8

/** @param name of the request, which the seller may take for the same one when it comes again. */
export async function sendRefundRequest(
  parts: PurchaseRecourseParts,
  recourse: Recourse,
  { purchase, url, name = recourse.id }: { purchase: Purchase; url: URL; name?: string },
): Promise<RefundAnswer> {
  const evidence = await parts.signDocument({
    type: EVIDENCE_TYPE,
    document: await buildEvidence({ ...parts, now: parts.clock() }, purchase),
  })
  return requestRefund({ ...parts, loopback: parts.settings.mode === 'sandbox' }, url, {
    name,
    purchaseId: purchase.id,
    evidence,
    reason: recourse.reason,
  })
}
