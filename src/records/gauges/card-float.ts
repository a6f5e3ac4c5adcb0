/** The card float: what cards have promised of wallets that their owners can empty. */
import type { Connection, Statement } from '../../storage/database.ts'

const statement: Statement = {
  name: 'card_float',
  text: `select coalesce(sum(f.micros), 0)::bigint as micros, coalesce(max(f.micros), 0)::bigint as largest, count(*)::int as accounts
    from (
      select w.account_id, card_float_micros(w.account_id) as micros
      from wallet w where w.owner->>'kind' <> 'gateway' and (
        exists (select from card_authorization a where a.account_id = w.account_id and a.status = 'pending')
        or exists (select from card_settlement s where s.account_id = w.account_id and s.ended_at is null))
    ) f where f.micros > 0`,
}

/** Millionths of a USD. @property largest of one account. @property accounts number of accounts with a promise. */
export interface CardFloat {
  readonly micros: bigint
  readonly largest: bigint
  readonly accounts: number
}

export async function readCardFloat(database: Pick<Connection, 'call'>): Promise<CardFloat> {
  const [row] = await database.call<CardFloat>(statement, [])
  return row ?? { micros: 0n, largest: 0n, accounts: 0 }
}
