/** History of an account's cash and shares in chronological order, from which its performance is computed. */
import { sql } from 'kysely'
import { available, external, held } from '../../books/ledger/accounts.ts'
import type { Connection } from '../../storage/database.ts'
import { BANK, BROKER } from './order.ts'

/**
 * A cash movement.
 * @property cents negative for outflows.
 * @property isFlow true for deposits and withdrawals, false for trades and dividends.
 */
export interface CashEvent {
  readonly at: Date
  readonly cents: bigint
  readonly isFlow: boolean
}

/** A share movement. @property qty negative for sales. */
export interface ShareEvent {
  readonly at: Date
  readonly symbol: string
  readonly qty: bigint
}

export interface History {
  readonly cash: readonly CashEvent[]
  readonly shares: readonly ShareEvent[]
}

/** Reads an account's history. Money held for an order still counts as the account's. */
export async function readHistory(connection: Connection, accountId: string): Promise<History> {
  const own = sql.join([available(accountId, BANK), held(accountId, BANK)])
  // The conditions on `split_part` and `left` are those of the partial indexes.
  const { rows: cash } = await sql<CashEvent>`
    select t.at, sum(p.units)::bigint as cents, p.other <> ${external(BROKER)} as "isFlow"
    from (
      select transaction_id, units, source as other from posting
      where destination in (${own}) and split_part(destination, ':', 2) = 'bank' and left(destination, 5) = 'acct_'
        and asset = 'USD' and source not in (${own})
      union all
      select transaction_id, -units, destination from posting
      where source in (${own}) and split_part(source, ':', 2) = 'bank' and left(source, 5) = 'acct_'
        and asset = 'USD' and destination not in (${own})
    ) p join ledger_transaction t on t.id = p.transaction_id
    group by t.at, 3 order by t.at`.execute(connection.kysely)
  const shares = await connection.kysely
    .selectFrom('position_change')
    .select(['at', 'symbol', 'qty'])
    .where('account_id', '=', accountId)
    .orderBy('at')
    .execute()
  return { cash, shares }
}
