/** Takes back a payment that is not settled: none is signed any more, and a signed one is made void on the chain. */
import { cancelPurchase, type PayingParts } from './pay-purchase.ts'
import { findPurchase, type Purchase } from './store.ts'

/**
 * Makes an unpaid purchase void, also while its seller is being asked. The seller may be faster: the chain decides. Errors leave it
 * to the job of purchases. @returns the purchase afterwards.
 */
export async function voidPurchase(parts: PayingParts, { id }: Pick<Purchase, 'id'>): Promise<Purchase> {
  const { database, clock } = parts
  const voided = await database.kysely
    .updateTable('purchase')
    .set({ is_canceled: true, updated_at: clock() })
    .where('id', '=', id)
    .where('state', 'in', ['reserved', 'signed'])
    .returningAll()
    .executeTakeFirst()
  if (voided !== undefined) await cancelPurchase(parts, voided)
  const purchase = await findPurchase(database, { id })
  if (purchase === undefined) throw new Error(`the purchase ${id} has no row`)
  return purchase
}
