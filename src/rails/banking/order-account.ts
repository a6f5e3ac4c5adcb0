/**
 * Orders of virtual accounts, recorded before the provider is called. An account has at most one open order per
 * currency.
 */
import { z } from 'zod'
import { type BankCurrency, bankCurrencies } from '../../providers/banking/port.ts'
import type { Connection, Statement } from '../../storage/database.ts'
import { type Destination, parseDestination } from './store.ts'

/** An order. @property id id of the future virtual account, and idempotency key at the provider. */
export interface AccountOrder {
  readonly id: string
  readonly accountId: string
  readonly currency: BankCurrency
  readonly ordinal: number
  readonly holderName: string
  readonly destination: Destination | null
  readonly createdAt: Date
}

interface Row {
  readonly id: string
  readonly account_id: string
  readonly currency: string
  readonly ordinal: number
  readonly holder_name: string
  readonly token: string | null
  readonly chain: string | null
  readonly address: string | null
  readonly created_at: Date
}

/** Finds the open order of a currency. */
export async function findOpenAccountOrder(
  database: Connection,
  { accountId, currency }: Pick<AccountOrder, 'accountId' | 'currency'>,
): Promise<AccountOrder | undefined> {
  const open = await database.kysely
    .selectFrom('virtual_account_order')
    .selectAll()
    .where('account_id', '=', accountId)
    .where('currency', '=', currency)
    .where('status', '=', 'open')
    .executeTakeFirst()
  return open === undefined ? undefined : parseOrder(open)
}

export async function insertAccountOrder(database: Connection, order: AccountOrder): Promise<void> {
  const { accountId, currency, destination } = order
  await database.kysely
    .insertInto('virtual_account_order')
    .values({
      id: order.id,
      account_id: accountId,
      currency,
      ordinal: order.ordinal,
      holder_name: order.holderName,
      token: destination?.token ?? null,
      chain: destination?.chain ?? null,
      address: destination?.address ?? null,
      status: 'open',
      created_at: order.createdAt,
      tried_at: order.createdAt,
    })
    .execute()
}

const claim: Statement = {
  name: 'banking_claim_orders',
  text: `update virtual_account_order set tried_at = $2 where id in (
      select id from virtual_account_order where status = 'open' and tried_at < $1
      order by tried_at limit $3 for update skip locked)
    returning id, account_id, currency, ordinal, holder_name, token, chain, address, created_at`,
}

/** Claims open orders that no process is working on. @param before latest time of the previous attempt. */
export async function claimAccountOrders(
  database: Connection,
  { before, at, limit }: { before: Date; at: Date; limit: number },
): Promise<AccountOrder[]> {
  return (await database.call<Row>(claim, [before, at, limit])).map(parseOrder)
}

export async function endAccountOrder(
  database: Connection,
  { id, status }: { id: string; status: 'opened' | 'given_up' },
): Promise<void> {
  await database.kysely.updateTable('virtual_account_order').set({ status }).where('id', '=', id).execute()
}

/** Deletes the order of an account that was not and will not be opened. */
export async function forgetAccountOrder(database: Connection, id: string): Promise<void> {
  await database.kysely
    .deleteFrom('virtual_account_order')
    .where('id', '=', id)
    .where('status', '=', 'open')
    .execute()
}

function parseOrder(row: Row): AccountOrder {
  return {
    id: row.id,
    accountId: row.account_id,
    currency: z.enum(bankCurrencies).parse(row.currency),
    ordinal: row.ordinal,
    holderName: row.holder_name,
    destination: parseDestination(row),
    createdAt: row.created_at,
  }
}
