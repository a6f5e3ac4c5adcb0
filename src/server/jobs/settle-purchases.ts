/** Finishes purchases of a chain that a crash or a slow seller left open. Outcomes come from the chain, never from elapsed time alone. */

import { findOrphans } from '../../books/spending/orphans.ts'
import { releaseSpend } from '../../books/spending/release.ts'
import { failPurchase } from '../../rails/buying/end-purchase.ts'
import { bookOutcome, cancelPurchase, type PayingParts } from '../../rails/buying/pay-purchase.ts'
import { bookEscrowRefund, reclaimEscrow, refundedEscrows } from '../../rails/buying/return-escrow.ts'
import {
  claimPurchase,
  findPurchase,
  lockReservation,
  openPurchases,
  type Purchase,
} from '../../rails/buying/store.ts'
import { findFunding } from '../../rails/swaps/fundings.ts'
import { findTransferOfDecision } from '../../rails/wallets/store.ts'
import type { Database } from '../../storage/database.ts'

const BATCH = 100
/** A younger purchase that is not signed, or not written, is left to the call that began it, or to a repeated one. */
const UNSIGNED_MS = 120_000
/** Pause between two looks at the same purchase. */
const PAUSE_MS = 2_000

/** Runs one round. A failing purchase does not block the others. @param signal stops the round early. */
export async function settlePurchases(parts: PayingParts, signal: AbortSignal): Promise<number> {
  const { database, clock, log } = parts
  const now = clock()
  const before = new Date(now.getTime() - UNSIGNED_MS)
  for (const decisionId of await findOrphans(database, {
    operations: ['purchases.buy'],
    tables: ['purchase'],
    before,
  }))
    await releaseOrphan(database, { decisionId, at: clock() })
  const ids = await openPurchases(database, { chain: parts.chain.name, at: now, before, limit: BATCH })
  for (const id of ids) {
    if (signal.aborted) break
    const at = clock()
    const until = new Date(at.getTime() + PAUSE_MS)
    const purchase = await claimPurchase(database, { id, until, at })
    if (purchase !== undefined)
      await finish(parts, purchase).catch((err: unknown) =>
        log.error({ err, purchaseId: id }, 'finishing a purchase failed'),
      )
  }
  for (const purchase of await refundedEscrows(database, {
    chain: parts.chain.name,
    at: clock(),
    limit: BATCH,
  })) {
    if (signal.aborted) break
    await bookEscrowRefund(parts, purchase).catch((err: unknown) =>
      log.error({ err, purchaseId: purchase.id }, 'booking a refund from escrow failed'),
    )
  }
  return ids.length
}

function releaseOrphan(database: Database, orphan: { decisionId: string; at: Date }): Promise<void> {
  return database.transaction(async (connection) => {
    await lockReservation(connection, orphan.decisionId)
    if ((await findPurchase(connection, orphan)) === undefined) await releaseSpend(connection, orphan)
  })
}

/** A development chain without traffic has no block that shows that the time has passed; a cancellation is one. */
function isStuck(
  { chain, clock }: Pick<PayingParts, 'chain' | 'clock'>,
  { valid_before: validBefore }: Purchase,
): boolean {
  const endedAt = validBefore?.getTime() ?? Number.POSITIVE_INFINITY
  return chain.isGasFree && clock().getTime() > endedAt + PAUSE_MS
}

async function finish(parts: PayingParts, purchase: Purchase): Promise<void> {
  if (purchase.state === 'signed') {
    if (purchase.is_canceled) await cancelPurchase(parts, purchase)
    else {
      const outcome = await bookOutcome(parts, purchase, null)
      if (outcome === 'open' && isStuck(parts, purchase)) await cancelPurchase(parts, purchase)
    }
    await reclaimEscrow(parts, purchase)
    return
  }
  if (purchase.state !== 'reserved') return
  const { database, clock } = parts
  const funding = await findFunding(database, purchase.decision_id)
  // A repeated call goes on once its money has come from the other chain.
  const isAwaited =
    funding?.state === 'moving' ||
    (funding?.state === 'arrived' && clock().getTime() - funding.updatedAt.getTime() < UNSIGNED_MS)
  if (isAwaited && !purchase.is_canceled) return
  await failPurchase(parts, purchase, {
    from: 'reserved',
    code: 'provider_unavailable',
    failure: funding?.failure ?? 'it was given up before anything was signed',
    unless: async (connection) => {
      await lockReservation(connection, purchase.decision_id)
      // Its money may be on its way to the purse: the transfer ends first.
      const transfer = await findTransferOfDecision(connection, purchase.decision_id)
      return transfer !== undefined && transfer.state !== 'confirmed' && transfer.state !== 'failed'
    },
  })
}
