/** Purchases whose settlement a reorganization of the chain may have dropped. */
import { purchaseOutcome } from '../../books/evidence/purchase-outcome.ts'
import { available, external, pursePlace } from '../../books/ledger/accounts.ts'
import { post } from '../../books/ledger/post.ts'
import type { Connection } from '../../storage/database.ts'
import type { PayingParts } from './pay-purchase.ts'
import { type Purchase, parseKind, signedPurchase } from './store.ts'

/** Finds purchases on a chain that were settled since a moment. */
export async function purchasesSettledSince(
  { database, chain }: { database: Connection; chain: { readonly name: string } },
  since: Date,
): Promise<Purchase[]> {
  return database.kysely
    .selectFrom('purchase')
    .selectAll()
    .where('chain', '=', chain.name)
    .where('state', '=', 'settled')
    .where('updated_at', '>=', since)
    .execute()
}

/**
 * Verifies a settlement again. A lost one may still be executed by the holder of the authorization. When that is no longer possible,
 * the money is booked back to the purse. @returns whether the outcome is certain.
 */
export async function verifyPurchase(
  {
    database,
    chain,
    clock,
    log,
    requireSameChain,
  }: Pick<PayingParts, 'database' | 'chain' | 'clock' | 'log'> & {
    /** @throws when the outcome was read on another chain than the settlement. */
    readonly requireSameChain: () => Promise<void>
  },
  purchase: Purchase,
): Promise<boolean> {
  const { id } = purchase
  const outcome = await purchaseOutcome(chain, signedPurchase(purchase))
  if (outcome.status === 'settled') {
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
    await post(connection, {
      id: `reversal:${id}`,
      kind: 'purchase_reversal',
      reference: id,
      at,
      postings: [
        {
          source: external(chain.name),
          destination: available(purchase.account_id, pursePlace(purchase.purse_id)),
          money: { asset, units: purchase.units },
        },
      ],
    })
  })
  log.error({ purchaseId: id }, 'the chain lost a settled purchase permanently; reversed it')
  return true
}
