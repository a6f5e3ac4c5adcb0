/** Positions: the ledger holds the quantity of shares; this table holds their cost. */
import { sql } from 'kysely'
import { available, held } from '../ledger/accounts.ts'
import { nameOfValue, sharesOf } from '../money/shares.ts'
import type { Connection } from '../storage/database.ts'
import { BROKER } from './order.ts'

/** A change of a position. @property qty negative for a sale. @property cash cents paid or received. */
export interface PositionChange {
  readonly id: string
  readonly accountId: string
  readonly symbol: string
  readonly qty: bigint
  readonly cash: bigint
  readonly orderId: string | null
  readonly at: Date
}

/** Shares of an account. @property qty billionths of a share, including those under sale. @property cost cents. */
export interface Position {
  readonly symbol: string
  readonly qty: bigint
  readonly cost: bigint
}

/**
 * Records a change that the ledger books in the same transaction. A purchase adds its cost; a sale removes its
 * proportional cost, rounded down; the last sale removes the rest.
 */
export async function changePosition(connection: Connection, change: PositionChange): Promise<void> {
  const { id, accountId, symbol, qty, cash, orderId, at } = change
  await connection.kysely
    .insertInto('position_change')
    .values({ id, account_id: accountId, symbol, qty, cash, order_id: orderId, at })
    .execute()
  const left = (await readPositions(connection, accountId, symbol))[0]
  const before = left?.cost ?? 0n
  const after = left?.qty ?? 0n
  const cost = qty > 0n ? before + cash : before - (after === 0n ? before : (before * -qty) / (after - qty))
  await connection.kysely
    .insertInto('position')
    .values({ account_id: accountId, symbol, cost })
    .onConflict((conflict) => conflict.columns(['account_id', 'symbol']).doUpdateSet({ cost }))
    .execute()
}

/**
 * Reads the shares that an account can sell now, excluding those held by open sells.
 * @returns billionths of a share.
 */
export async function availableShares(
  connection: Connection,
  accountId: string,
  symbol: string,
): Promise<bigint> {
  const row = await connection.kysely
    .selectFrom('balance')
    .select('units')
    .where('account', '=', available(accountId, BROKER))
    .where('asset', '=', sharesOf(symbol, 0n).asset)
    .executeTakeFirst()
  return row?.units ?? 0n
}

/** Reads an account's positions with their cost, by symbol; sold positions are included only for a named symbol. */
export async function readPositions(
  connection: Connection,
  accountId: string,
  symbol?: string,
): Promise<readonly Position[]> {
  const accounts = [available(accountId, BROKER), held(accountId, BROKER)]
  const { rows } = await sql<{ asset: `equity:${string}`; qty: bigint }>`
    select asset, sum(units)::bigint as qty from balance
    where account in (${sql.join(accounts)}) and asset like 'equity:%'
      and (${symbol ?? null}::text is null or asset = ${sharesOf(symbol ?? '', 0n).asset})
    group by asset order by asset`.execute(connection.kysely)
  const costs = await connection.kysely
    .selectFrom('position')
    .select(['symbol', 'cost'])
    .where('account_id', '=', accountId)
    .execute()
  const costOf = new Map(costs.map((row) => [row.symbol, row.cost]))
  return rows
    .map(({ asset, qty }) => ({ symbol: nameOfValue({ asset }), qty }))
    .map((row) => ({ ...row, cost: costOf.get(row.symbol) ?? 0n }))
    .filter(({ qty }) => qty > 0n || symbol !== undefined)
}
