import type { Connection, Statement } from '../../storage/database.ts'

const statement: Statement = {
  name: 'payees_restart',
  text: `insert into payee (key_id, counterparty, first_seen_at)
    select k.id, lower(c.payee), $3 from access_key k, unnest($2::text[]) c (payee)
    where k.account_id = $1 and k.status <> 'revoked'
    on conflict (key_id, counterparty) do update set first_seen_at = excluded.first_seen_at`,
}

/** Makes payees new for every key of an account: the cool-downs of their policies start. @param at of the calendar. */
export async function restartCooldowns(
  database: Connection,
  { accountId, payees, at }: { accountId: string; payees: readonly string[]; at: Date },
): Promise<void> {
  if (payees.length > 0) await database.call(statement, [accountId, [...payees], at])
}
