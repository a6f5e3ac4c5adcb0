/**
 * Money that comes back from escrow: what the seller has not captured in time is taken by the address that paid, and what the seller has
 * the escrow refund is booked. Both by the state of the escrow; nobody's word counts.
 */
import { available, external, pursePlace } from '../../books/ledger/accounts.ts'
import { post } from '../../books/ledger/post.ts'
import { toJson } from '../../core/base/json.ts'
import type { Connection } from '../../storage/database.ts'
import { purseKey } from './authorization.ts'
import { encodeReclaim, findCaptureEnd } from './escrow.ts'
import { bookOutcome, type PayingParts } from './pay-purchase.ts'
import { escrowPayment, hashEscrow, type Purchase, parseKind } from './store.ts'

/** Transactions by one address, of which the first one is enough unless the chain reverts it. */
const MAX_RECLAIMS = 3
/** Pause before a refund is looked at again that the final block does not show yet. */
const REFUND_PAUSE_MS = 10_000

/** First moment in which a seller can capture no more of a purchase. */
export function findReclaimableAt({ offer }: Pick<Purchase, 'offer'>): Date {
  return findCaptureEnd(toJson(offer))
}

/** Whether its seller can capture no more of a purchase: by the clock, or by the chain, whose blocks may be ahead of it. */
export async function isReclaimable(
  { chain, clock }: Pick<PayingParts, 'chain' | 'clock'>,
  purchase: Pick<Purchase, 'offer'>,
): Promise<boolean> {
  const endsAt = findReclaimableAt(purchase)
  return clock() >= endsAt || (await chain.latestBlockAt()) >= endsAt
}

/**
 * Takes what is left in escrow of a purchase, once its seller can capture no more, and books what the chain shows then. Safe to repeat, also
 * at once: the address sends a transaction of each number once, and the escrow gives the money once. @returns false if it is too early.
 * @throws when the chain does not confirm it.
 */
export async function reclaimEscrow(parts: PayingParts, purchase: Purchase): Promise<boolean> {
  const { chain, settings } = parts
  if (purchase.scheme !== 'auth-capture' || purchase.state !== 'signed') return false
  if (!(await isReclaimable(parts, purchase))) return false
  const hash = hashEscrow(purchase)
  const call = encodeReclaim(escrowPayment(purchase))
  const account = purseKey(settings.dataKey, purchase.purse_id)
  for (let nonce = 0; nonce < MAX_RECLAIMS; nonce += 1) {
    const { capturable } = await chain.escrowState(hash, 'latest')
    if (capturable === 0n) break
    await chain.callAs(account, { ...call, nonce })
  }
  await bookOutcome(parts, purchase, null)
  return true
}

/** Finds settled purchases whose escrow has moved money back since. */
export async function refundedEscrows(
  { kysely }: Connection,
  { chain, at, limit }: { chain: string; at: Date; limit: number },
): Promise<readonly Purchase[]> {
  return kysely
    .selectFrom('purchase')
    .selectAll()
    .where('state', '=', 'settled')
    .where('chain', '=', chain)
    .where('escrow_look_at', 'is not', null)
    .where('escrow_look_at', '<=', at)
    .orderBy('escrow_look_at')
    .limit(limit)
    .execute()
}

/** Name of the ledger's transactions by which the escrow's refunds of a purchase are booked. */
export function nameEscrowRefunds({ id }: Pick<Purchase, 'id'>): string {
  return `deposit:escrow:${id}:`
}

/**
 * Books what the escrow has refunded of a settled purchase since the last time: the difference of what it shows to be refundable, which only
 * falls.
 */
export async function bookEscrowRefund(
  { database, chain, clock }: Pick<PayingParts, 'database' | 'chain' | 'clock'>,
  purchase: Purchase,
): Promise<void> {
  const { id, account_id: accountId, purse_id: purseId } = purchase
  const { asset } = parseKind(purchase)
  const hash = hashEscrow(purchase)
  // In this order: what the final block shows, the latest one shows too.
  const { isCollected, refundable } = await chain.escrowState(hash, 'final')
  const latest = await chain.escrowState(hash, 'latest')
  const at = clock()
  // A chain that was lost shows nothing.
  const isSeen = isCollected && latest.refundable === refundable
  await database.transaction(async (connection) => {
    const before = await connection.kysely
      .selectFrom('purchase')
      .select('escrow_refundable')
      .where('id', '=', id)
      .where('state', '=', 'settled')
      .forUpdate()
      .executeTakeFirst()
    if (before === undefined || before.escrow_refundable === null) return
    const units = isCollected ? before.escrow_refundable - refundable : 0n
    await connection.kysely
      .updateTable('purchase')
      .set({
        ...(units > 0n ? { escrow_refundable: refundable } : {}),
        escrow_look_at: isSeen || !isCollected ? null : new Date(at.getTime() + REFUND_PAUSE_MS),
      })
      .where('id', '=', id)
      .execute()
    if (units <= 0n) return
    await post(connection, {
      id: `${nameEscrowRefunds(purchase)}${refundable}`,
      kind: 'deposit',
      reference: id,
      at,
      postings: [
        {
          source: external(chain.name),
          destination: available(accountId, pursePlace(purseId)),
          money: { asset, units },
        },
      ],
    })
  })
}
