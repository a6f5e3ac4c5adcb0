/** A repeated call: the same purchase, and where it may still be delivered, the same payment presented again. */
import { setTimeout as sleep } from 'node:timers/promises'
import { Failure } from '../failures/failure.ts'
import { bookOutcome, type PayingParts, presentPurchase } from './pay-purchase.ts'
import { hashOfRequest, type PurchaseRequest } from './request.ts'
import { claimPurchase, findPurchase, type Purchase, unclaimPurchase } from './store.ts'

/** How long a paid purchase without an answer is asked for again. */
const REPEAT_MS = 24 * 60 * 60_000

/** How long a repeated call waits for the one that works on it. */
const WAIT_MS = 10_000
const POLL_MS = 100

/**
 * @param busyMs how long this call may work on it.
 * @returns null while another call works on it.
 * @throws Failure `provider_unavailable` when it was given up before anything was signed.
 */
export async function recallPurchase(
  parts: PayingParts,
  { decisionId, request, busyMs }: { decisionId: string; request: PurchaseRequest; busyMs: number },
): Promise<Purchase | null> {
  const until = performance.now() + WAIT_MS
  for (;;) {
    const recalled = await recallOnce(parts, { decisionId, request, busyMs })
    if (recalled !== null || performance.now() > until) return recalled
    await sleep(POLL_MS)
  }
}

async function recallOnce(
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
  // Nothing is signed: either the first call is about to, or a job gives the money back.
  if (purchase.state === 'reserved') return null
  const until = new Date(now.getTime() + busyMs)
  const claimed = await claimPurchase(database, { id: purchase.id, until, at: now })
  if (claimed === undefined) return null
  try {
    const mustAsk =
      claimed.delivered_at === null &&
      (claimed.state === 'settled' || !claimed.is_canceled) &&
      claimed.request_hash === hashOfRequest(request)
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
