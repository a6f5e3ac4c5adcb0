/** Outcome of an earlier order, for a repeated call. */
import type { Connection } from '../../storage/database.ts'
import { buildRejection } from './admit-order.ts'
import type { Order } from './order.ts'
import { rejectedOrder } from './place-order.ts'
import { findOrder, type OrderOwner } from './store.ts'

/**
 * Finds a decision's order in its current state.
 * @returns null while it is about to be placed.
 * @throws Failure `order_rejected` when the broker rejected it or it was never placed.
 */
export async function findRepeatedOrder(
  { database }: { database: Connection },
  { decisionId, clientOrderId, ...owner }: OrderOwner & { decisionId: string; clientOrderId: string | null },
): Promise<Order | null> {
  const own = await findOrder(database, { decisionId })
  const order =
    own ?? (clientOrderId === null ? undefined : await findOrder(database, { ...owner, clientOrderId }))
  if (order?.status === 'rejected') throw rejectedOrder(order)
  if (order !== undefined) return order
  const reservation = await database.kysely
    .selectFrom('reservation')
    .select('status')
    .where('decision_id', '=', decisionId)
    .executeTakeFirst()
  if (reservation?.status === 'released') throw buildRejection('never_placed', 'The order was never placed.')
  return null
}
