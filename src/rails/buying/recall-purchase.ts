/** A repeated call: the same purchase, and where it may still be delivered, the same payment presented again. */
import { timers } from '../../core/base/timers.ts'
import { buildGivenUpFailure } from './fund-purchase.ts'
import { bookOutcome, type PayingParts, presentPurchase } from './pay-purchase.ts'
import { hashRequest, type PurchaseRequest } from './request.ts'
import {
  BUSY_MS,
  claimPurchase,
  deliverableUntil,
  findPurchase,
  isOver,
  type Purchase,
  whileClaimed,
} from './store.ts'

/** How long a repeated call waits for the one that works on it. */
const WAIT_MS = 10_000
const POLL_MS = 100

/** A younger reservation without a purchase may be about to get it. */
const UNWRITTEN_MS = 10_000

export interface Recalled {
  readonly decisionId: string
  readonly request: PurchaseRequest
  /** False if the request lacks what it was bought with: the seller is not asked. */
  readonly mayAsk: boolean
  /** Writes the purchase of a call that ended before it did. */
  readonly write: () => Promise<Purchase>
  /** Signs and pays a purchase that is not signed. */
  readonly pay: (purchase: Purchase) => Promise<Purchase>
}

/** @property askedAgain this call sent the payment to the seller. */
export interface RecalledPurchase {
  readonly purchase: Purchase
  readonly askedAgain: boolean
}

/**
 * Goes on where the first call ended, if it did.
 * @returns null while another call works on it.
 * @throws Failure `provider_unavailable` when it was given up before anything was signed.
 */
export async function recallPurchase(
  parts: PayingParts,
  recalled: Recalled,
): Promise<RecalledPurchase | null> {
  const until = timers.monotonic() + WAIT_MS
  for (;;) {
    const found = await findPurchase(parts.database, { decisionId: recalled.decisionId })
    const purchase = await recallOnce(parts, recalled, found)
    if (purchase !== null) return { purchase, askedAgain: purchase.attempts > (found?.attempts ?? 0) }
    if (timers.monotonic() > until) return null
    await timers.sleep(POLL_MS)
  }
}

async function recallOnce(
  parts: PayingParts,
  recalled: Recalled,
  found: Purchase | undefined,
): Promise<Purchase | null> {
  const { database, clock } = parts
  const { decisionId, request, mayAsk, pay } = recalled
  const purchase = found ?? (await rewrite(parts, recalled))
  if (purchase === null) return null
  const now = clock()
  if (isOver(purchase) || isTooOld(purchase, now)) return purchase
  const until = new Date(now.getTime() + BUSY_MS)
  const claimed =
    found === undefined ? purchase : await claimPurchase(database, { id: purchase.id, until, at: now })
  if (claimed === undefined) return null
  return whileClaimed(parts, purchase.id, async () => {
    // An unsigned one that is over is ended by a job.
    if (claimed.state === 'reserved') return claimed.is_canceled || !mayAsk ? null : await pay(claimed)
    const mayCome = claimed.state === 'settled' || !claimed.is_canceled
    const isSame = mayAsk && claimed.request_hash === hashRequest(request)
    const mustAsk = claimed.delivered_at === null && mayCome && isSame
    if (mustAsk && claimed.scheme === 'batch-settlement') return await pay(claimed)
    if (mustAsk) return await presentPurchase(parts, claimed, request)
    if (claimed.state === 'signed') await bookOutcome(parts, claimed, null)
    return (await findPurchase(database, { decisionId })) ?? null
  })
}

/** True for a paid purchase that is no longer asked for. */
function isTooOld(purchase: Purchase, now: Date): boolean {
  const until = deliverableUntil(purchase)
  return purchase.state === 'settled' && until !== null && now > until
}

/**
 * Writes a purchase whose process ended before it did. @returns null if the first call may be about to.
 * @throws Failure as {@link givenUp}.
 */
async function rewrite(
  { database, clock }: PayingParts,
  { decisionId, write }: Recalled,
): Promise<Purchase | null> {
  const reservation = await database.kysely
    .selectFrom('reservation')
    .select(['status', 'reserved_at'])
    .where('decision_id', '=', decisionId)
    .executeTakeFirst()
  if (reservation?.status === 'released') throw buildGivenUpFailure(decisionId)
  const isYoung = clock().getTime() < (reservation?.reserved_at.getTime() ?? Infinity) + UNWRITTEN_MS
  return isYoung ? null : write()
}
