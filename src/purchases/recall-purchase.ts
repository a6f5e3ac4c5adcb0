/** A repeated call: the same purchase, and where it may still be delivered, the same payment presented again. */
import { Failure } from '../failures/failure.ts'
import { bookOutcome, type PayingParts, presentPurchase } from './pay-purchase.ts'
import { hashOfRequest, type PurchaseRequest } from './request.ts'
import { claimPurchase, findPurchase, type Purchase, unclaimPurchase } from './store.ts'

/** How long a paid purchase without an answer is asked for again. */
const REPEAT_MS = 24 * 60 * 60_000

/**
 * @param busyMs how long this call may work on it.
 * @returns null while another call works on it.
 * @throws Failure `provider_unavailable` when it was given up before anything was signed.
 */
export async function recallPurchase(
  parts: PayingParts,
  { decisionId, request, busyMs }: { decisionId: string; request: PurchaseRequest; busyMs: number },
): Promise<Purchase | null> {
  const { database, clock } = parts
  const purchase = await findPurchase(database, { decisionId })
  if (purchase === undefined) return withoutRow(parts, decisionId)
  const now = clock()
  const isOver =
    purchase.state === 'failed' || (purchase.state === 'settled' && purchase.delivered_at !== null)
  const isOld = now.getTime() > purchase.created_at.getTime() + REPEAT_MS
  if (isOver || (isOld && purchase.state === 'settled')) return purchase
  const until = new Date(now.getTime() + busyMs)
  const claimed = await claimPurchase(database, { id: purchase.id, until, at: now })
  // Nothing was signed: a job gives the money back.
  if (claimed === undefined || claimed.state === 'reserved') return null
  try {
    const mustAsk =
      claimed.delivered_at === null && !claimed.is_canceled && claimed.request_hash === hashOfRequest(request)
    if (mustAsk) return await presentPurchase(parts, claimed, request)
    if (claimed.state === 'signed') await bookOutcome(parts, claimed, null)
    return (await findPurchase(database, { decisionId })) ?? null
  } finally {
    await unclaimPurchase(database, purchase.id, clock())
  }
}

/** The first call is about to write the row, or its process ended and the money was given back. */
async function withoutRow({ database }: Pick<PayingParts, 'database'>, decisionId: string): Promise<null> {
  const reservation = await database.kysely
    .selectFrom('reservation')
    .select('status')
    .where('decision_id', '=', decisionId)
    .executeTakeFirst()
  if (reservation?.status !== 'released') return null
  throw givenUp(decisionId)
}

/** A purchase that ended before anything was signed. */
export function givenUp(decisionId: string): Failure {
  return new Failure(
    'provider_unavailable',
    'This purchase was given up before anything was signed. Nothing was paid.',
    { decisionId, isFinal: true, hint: 'Send it again with a new idempotency key.' },
  )
}
