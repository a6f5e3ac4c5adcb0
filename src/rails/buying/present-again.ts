/** Presents the payment of an undelivered purchase again, without its buyer. */
import { type PayingParts, presentPurchase } from './pay-purchase.ts'
import { hashRequest, type PurchaseRequest, readRequest } from './request.ts'
import { BUSY_MS, claimPurchase, deliverableUntil, type Purchase, whileClaimed } from './store.ts'
import { methods } from './terms.ts'

/**
 * Asks the seller again with the same payment. Bodies, header fields and logins are not kept, so that only a purchase that had none
 * can be asked for again; its buyer can, by the same idempotency key.
 * @returns `busy` while another call works on it; `over` where it can no longer be delivered; `unknown_request`.
 */
export async function presentAgain(
  parts: PayingParts,
  purchase: Purchase,
): Promise<Purchase | 'busy' | 'over' | 'unknown_request'> {
  const { database, clock } = parts
  const at = clock()
  const until = deliverableUntil(purchase)
  if (until === null || until <= at || purchase.credential === null) return 'over'
  const request = rebuildRequest(parts, purchase)
  if (request === null) return 'unknown_request'
  const { id } = purchase
  const claimed = await claimPurchase(database, { id, until: new Date(at.getTime() + BUSY_MS), at })
  if (claimed === undefined) return 'busy'
  return whileClaimed(parts, id, () => presentPurchase(parts, claimed, request))
}

/** The request of a purchase by its URL and method; null if it was another. */
function rebuildRequest(
  { settings }: Pick<PayingParts, 'settings'>,
  { url, method: name, request_hash: hash }: Purchase,
): PurchaseRequest | null {
  const method = methods.find((one) => one === name)
  if (method === undefined) return null
  const request = readRequest({ url, method }, { loopback: settings.mode === 'sandbox' })
  return hashRequest(request) === hash ? request : null
}
