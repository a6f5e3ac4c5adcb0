/** Stored transfers of cash between the firm's account and those of persons at the broker. */
import type { Selectable } from 'kysely'
import type { CashTransferReport } from '../../providers/broker/accounts.ts'
import type { Connection } from '../../storage/database.ts'
import type { BrokerageTransferTable } from '../../storage/schema.ts'

/** A transfer of cash. @property orderId the order that it pays for; null: cash that goes back to the firm. */
export interface KeptTransfer {
  readonly id: string
  readonly accountId: string
  readonly orderId: string | null
  readonly cents: bigint
  readonly status: BrokerageTransferTable['status']
  readonly providerId: string | null
}

const parseTransfer = (row: Selectable<BrokerageTransferTable>): KeptTransfer => ({
  id: row.id,
  accountId: row.account_id,
  orderId: row.order_id,
  cents: row.cents,
  status: row.status,
  providerId: row.provider_id,
})

/** Records a transfer before it is sent, once. @returns the recorded one. */
export async function insertTransfer(
  database: Connection,
  {
    id,
    accountId,
    orderId,
    cents,
    at,
  }: Pick<KeptTransfer, 'id' | 'accountId' | 'orderId' | 'cents'> & { at: Date },
): Promise<KeptTransfer> {
  await database.kysely
    .insertInto('brokerage_transfer')
    .values({
      id,
      account_id: accountId,
      order_id: orderId,
      cents,
      status: 'new',
      provider_id: null,
      created_at: at,
    })
    .onConflict((conflict) => conflict.column('id').doNothing())
    .execute()
  const row = await database.kysely
    .selectFrom('brokerage_transfer')
    .selectAll()
    .where('id', '=', id)
    .executeTakeFirstOrThrow()
  return parseTransfer(row)
}

/** Locks an account's row until the transaction ends, so that one transfer back to the firm is started at a time. */
export async function lockBrokerageAccount({ kysely }: Connection, accountId: string): Promise<void> {
  await kysely
    .selectFrom('brokerage_account')
    .select('account_id')
    .where('account_id', '=', accountId)
    .forUpdate()
    .execute()
}

/** Checks for a transfer back to the firm that is on its way, or that was started since a moment. */
export async function hasReturnSince(
  { kysely }: Connection,
  { accountId, startedAt }: { accountId: string; startedAt: Date },
): Promise<boolean> {
  const row = await kysely
    .selectFrom('brokerage_transfer')
    .select('id')
    .where('account_id', '=', accountId)
    .where('order_id', 'is', null)
    .where((where) =>
      where.or([where('status', 'in', ['new', 'pending']), where('created_at', '>=', startedAt)]),
    )
    .executeTakeFirst()
  return row !== undefined
}

/** Finds the transfer of cash back to the firm that is on its way. */
export async function findReturn(database: Connection, accountId: string): Promise<KeptTransfer | undefined> {
  const row = await database.kysely
    .selectFrom('brokerage_transfer')
    .selectAll()
    .where('account_id', '=', accountId)
    .where('order_id', 'is', null)
    .where('status', 'in', ['new', 'pending'])
    .executeTakeFirst()
  return row === undefined ? undefined : parseTransfer(row)
}

/** Stores the broker's report; an ended transfer never changes. */
export async function updateTransfer(
  database: Connection,
  id: string,
  { id: providerId, status }: CashTransferReport,
): Promise<void> {
  await database.kysely
    .updateTable('brokerage_transfer')
    .set({ status, ...(providerId === null ? {} : { provider_id: providerId }) })
    .where('id', '=', id)
    .where('status', 'in', ['new', 'pending'])
    .execute()
}
