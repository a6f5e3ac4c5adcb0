/**
 * Purchases whose end a reorganization of the chain may have undone: a lost settlement is reversed, and a payment that the chain
 * shows although it had been cancelled or had expired is booked.
 */
import { raiseAlarm } from '../../books/alarms/alarms.ts'
import { purchaseOutcome } from '../../books/evidence/purchase-outcome.ts'
import { available, external, pursePlace } from '../../books/ledger/accounts.ts'
import { post } from '../../books/ledger/post.ts'
import type { Hex } from '../../providers/chain/port.ts'
import { type Connection, callForRow, type Statement } from '../../storage/database.ts'
import { cancelPayment } from './cancel-payment.ts'
import type { PayingParts } from './pay-purchase.ts'
import { chargedUnits, type Purchase, parseKind, signedPurchase } from './store.ts'

/** How long a payment waits for money that its purse holds for others; signatures of purses end within minutes. */
const PURSE_WAIT_MS = 30 * 60_000

type VerifyingParts = Pick<PayingParts, 'database' | 'chain' | 'clock' | 'log'> & {
  readonly settings: Pick<PayingParts['settings'], 'dataKey'>
  /** @throws when the outcome was read on another chain than the settlement. */
  readonly requireSameChain: () => Promise<void>
}

/**
 * Finds signed purchases on a chain that were settled or have failed since a moment. What the escrow shows is read from a block that can no
 * longer change.
 */
export async function purchasesEndedSince(
  { database, chain }: { database: Connection; chain: { readonly name: string } },
  since: Date,
): Promise<Purchase[]> {
  return database.kysely
    .selectFrom('purchase')
    .selectAll()
    .where('chain', '=', chain.name)
    .where('state', 'in', ['settled', 'failed'])
    .where('valid_before', 'is not', null)
    .where('scheme', '<>', 'auth-capture')
    .where('updated_at', '>=', since)
    .execute()
}

/** Verifies the end of a purchase again. @returns whether the outcome is certain. */
export function verifyPurchase(parts: VerifyingParts, purchase: Purchase): Promise<boolean> {
  return purchase.state === 'settled' ? verifySettlement(parts, purchase) : verifyFailure(parts, purchase)
}

/**
 * A lost settlement may still be executed by the holder of the authorization. When that is no longer possible, the money is booked
 * back to the purse.
 */
async function verifySettlement(parts: VerifyingParts, purchase: Purchase): Promise<boolean> {
  const { database, chain, clock, log, requireSameChain } = parts
  const { id } = purchase
  const outcome = await purchaseOutcome(chain, signedPurchase(purchase))
  // The replaced block may have settled another amount.
  const isSame = outcome.status === 'settled' && outcome.units === chargedUnits(purchase)
  if (isSame) {
    if (outcome.transactionHash !== purchase.transaction_hash)
      await database.kysely
        .updateTable('purchase')
        .set({ transaction_hash: outcome.transactionHash, updated_at: clock() })
        .where('id', '=', id)
        .where('state', '=', 'settled')
        .execute()
    return true
  }
  if (outcome.status === 'open' || outcome.status === 'canceling') return false
  await requireSameChain()
  const { asset } = parseKind(purchase)
  const at = clock()
  await database.transaction(async (connection) => {
    const reversed = await connection.kysely
      .updateTable('purchase')
      .set({
        state: 'failed',
        failure_code: 'seller_failed',
        failure: 'a reorganization of the chain undid the payment',
        reversed_at: at,
        updated_at: at,
      })
      .where('id', '=', id)
      .where('state', '=', 'settled')
      .returning('id')
      .executeTakeFirst()
    if (reversed === undefined) return
    const times = await countRestorations(connection, id)
    await post(connection, {
      id: times === 0 ? `reversal:${id}` : `reversal:${id}:${times}`,
      kind: 'purchase_reversal',
      reference: id,
      at,
      postings: [
        {
          source: external(chain.name),
          destination: available(purchase.account_id, pursePlace(purchase.purse_id)),
          money: { asset, units: chargedUnits(purchase) },
        },
      ],
    })
  })
  log.error({ purchaseId: id }, 'the chain lost a settled purchase permanently; reversed it')
  // What it was settled for instead is booked like any payment that the chain brings after a failure.
  return outcome.status === 'settled' ? restorePurchase(parts, purchase, outcome) : true
}

async function countRestorations({ kysely }: Connection, id: string): Promise<number> {
  const rows = await kysely
    .selectFrom('posting')
    .select('transaction_id')
    .where('transaction_id', '>=', `restored:${id}:`)
    .where('transaction_id', '<', `restored:${id};`)
    .where('ordinal', '=', 1)
    .execute()
  return rows.length
}

/**
 * The money of a failed purchase is available again. An authorization that can be used again is cancelled again; one that was used
 * is paid.
 */
async function verifyFailure(parts: VerifyingParts, purchase: Purchase): Promise<boolean> {
  const { chain, log, requireSameChain } = parts
  const outcome = await purchaseOutcome(chain, signedPurchase(purchase))
  if (outcome.status === 'expired' || outcome.status === 'canceled') return true
  await requireSameChain()
  if (outcome.status === 'settled') return outcome.units === 0n || restorePurchase(parts, purchase, outcome)
  if (outcome.status === 'canceling') return false
  log.warn({ purchaseId: purchase.id }, 'the chain lost a cancellation; sending it again')
  await cancelPayment(parts, purchase)
  return false
}

const restoration: Statement = {
  name: 'purchase_restore',
  text: 'select verdict from purchase_restore($1, $2, $3, $4, $5)',
}

async function restorePurchase(
  { database, clock, log }: VerifyingParts,
  purchase: Purchase,
  { transactionHash, units }: { transactionHash: Hex; units: bigint },
): Promise<boolean> {
  const { id, asset, valid_before: validBefore } = purchase
  const at = clock()
  const isLate = at.getTime() > (validBefore?.getTime() ?? 0) + PURSE_WAIT_MS
  const { verdict } = await callForRow<{ verdict: 'restored' | 'short' | 'none' }>(database, restoration, [
    id,
    transactionHash,
    units,
    isLate,
    at,
  ])
  if (verdict === 'restored')
    log.error({ purchaseId: id }, 'the chain paid a purchase that had failed; booked it')
  if (verdict === 'short' && isLate)
    await raiseAlarm(
      { database, log },
      {
        domain: 'purchases',
        objectId: id,
        reason: 'paid_after_failure',
        reported: { asset, units: units.toString(), transactionHash },
        at,
      },
    )
  return verdict !== 'short' || isLate
}
