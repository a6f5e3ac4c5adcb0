/** Balances of accounts, as booked. */
import { sql } from 'kysely'
import type { Asset } from '../../core/money/money.ts'
import type { Connection } from '../../storage/database.ts'
import type { OwnerAccount, SystemAccount } from './accounts.ts'

export interface Balance {
  readonly place: string
  readonly asset: Asset
  readonly available: bigint
  readonly held: bigint
  /** Booked money that the place no longer holds; see `frozen` in accounts.ts. */
  readonly frozen: bigint
}

/** Reads all balances of an owner's money that were ever above zero, by place and asset. Shares are excluded. */
export async function balances(connection: Connection, accountId: string): Promise<readonly Balance[]> {
  // A range over the primary key. ';' follows ':' in collation C.
  const { rows } = await sql<Balance>`
    select split_part(account, ':', 2) as place, asset,
      coalesce(sum(units) filter (where account like '%:available'), 0)::bigint as available,
      coalesce(sum(units) filter (where account like '%:held'), 0)::bigint as held,
      coalesce(sum(units) filter (where account like '%:frozen'), 0)::bigint as frozen
    from balance
    where account > ${`${accountId}:`} and account < ${`${accountId};`} and asset not like 'equity:%'
    group by 1, 2
    order by 1, 2`.execute(connection.kysely)
  return rows
}

/** Reads the balance of an owner's account in smallest units and locks its row until the transaction ends. */
export async function lockUnits(
  connection: Connection,
  account: OwnerAccount,
  asset: Asset,
): Promise<bigint> {
  const row = await connection.kysely
    .selectFrom('balance')
    .select('units')
    .where('account', '=', account)
    .where('asset', '=', asset)
    .forUpdate()
    .executeTakeFirst()
  return row?.units ?? 0n
}

/** Sums a system account's postings, in smallest units. Negative when more left the account than entered it. */
export async function readSystemBalance(
  connection: Connection,
  account: SystemAccount,
  asset: Asset,
): Promise<bigint> {
  const { rows } = await sql<{ units: bigint }>`
    select (
      (select coalesce(sum(units), 0) from posting
        where destination = ${account} and asset = ${asset}) -
      (select coalesce(sum(units), 0) from posting
        where source = ${account} and asset = ${asset})
    )::bigint as units`.execute(connection.kysely)
  return rows[0]?.units ?? 0n
}
