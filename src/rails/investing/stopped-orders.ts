/** Cancels the orders of stopped and ended keys, and of locked accounts. */
import type { Connection, Statement } from '../../storage/database.ts'
import type { InvestingDependencies } from './order.ts'
import { resumeOrder } from './resume-order.ts'
import { findOrder } from './store.ts'

// The triggers in the migrations do the same when a key is stopped; this finds orders placed at that moment, and those of keys that
// have reached their end, which changes no row.
const requestStatement: Statement = {
  name: 'investing_cancel_stopped',
  text: `update investing_order set cancel_requested_at = $1 where id in (
      select o.id from investing_order o join account a on a.id = o.account_id join decision d on d.id = o.decision_id
      where o.status in ('new', 'accepted', 'partially_filled') and o.cancel_requested_at is null
        and (a.status = 'locked' or not key_is_active(d.key_id)
          or exists (select from access_key k where k.id = d.key_id and k.expires_at <= $1))
      for update of o skip locked)`,
}

/** Records cancel requests for these orders. */
export async function requestStoppedCancels(database: Connection, at: Date): Promise<void> {
  await database.call(requestStatement, [at])
}

/** Cancels an account's requested orders at the broker at once. The settle-orders job retries failures. */
export async function cancelStoppedOrders(
  dependencies: InvestingDependencies,
  accountId: string,
): Promise<void> {
  const { database, log } = dependencies
  const rows = await database.kysely
    .selectFrom('investing_order')
    .select('id')
    .where('account_id', '=', accountId)
    .where('status', 'in', ['new', 'accepted', 'partially_filled'])
    .where('cancel_requested_at', 'is not', null)
    .execute()
  for (const { id } of rows) {
    const order = await findOrder(database, { accountId, id })
    if (order === undefined) continue
    await resumeOrder(dependencies, order).catch((err: unknown) =>
      log.warn({ err, orderId: id }, 'an order of a stopped key is not canceled yet'),
    )
  }
}
