/** Positions: the ledger holds the quantity of shares; this table holds their cost. */
import { sql } from 'kysely'
import { available, held } from '../../books/ledger/accounts.ts'
import { nameOfValue, toShares } from '../../core/money/shares.ts'
import type { Connection, Statement } from '../../storage/database.ts'
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

const bookStatement: Statement = {
  name: 'investing_book_position',
  text: 'select position_book($1, $2, $3, $4, $5, $6, $7)',
}

/** Records a change that the ledger books in the same transaction, with its cost. */
export async function changePosition(
  connection: Connection,
  { id, accountId, symbol, qty, cash, orderId, at }: PositionChange,
): Promise<void> {
  await connection.call(bookStatement, [id, accountId, symbol, qty, cash, orderId, at])
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
    .where('asset', '=', toShares(symbol, 0n).asset)
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
      and (${symbol ?? null}::text is null or asset = ${toShares(symbol ?? '', 0n).asset})
    group by asset order by asset`.execute(connection.kysely)
  const costs = await connection.kysely
    .selectFrom('position')
    .select(['symbol', 'cost'])
    .where('account_id', '=', accountId)
    .execute()
  const costBySymbol = new Map(costs.map((row) => [row.symbol, row.cost]))
  return rows
    .map(({ asset, qty }) => ({ symbol: nameOfValue({ asset }), qty }))
    .map((row) => ({ ...row, cost: costBySymbol.get(row.symbol) ?? 0n }))
    .filter(({ qty }) => qty > 0n || symbol !== undefined)
}
