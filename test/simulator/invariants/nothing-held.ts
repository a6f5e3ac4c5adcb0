import { sql } from 'kysely'
import type { Invariant } from './invariant.ts'

export const nothingHeld: Invariant = {
  sentence:
    'Nothing is held once everything has ended, but for settlements that the chain refuses: they are owed.',
  check: async ({ world }) => {
    const { rows } = await sql<{ line: string }>`
      select b.account || ' ' || b.asset || ' ' || b.units || ', owed ' || coalesce(sum(s.units), 0) as line
      from balance b left join card_settlement s
        on s.account_id || ':' || s.place || ':held' = b.account and s.asset = b.asset and s.status = 'refused'
      where b.account like 'acct\\_%:held' and b.units <> 0
      group by b.account, b.asset, b.units having b.units <> coalesce(sum(s.units), 0) order by 1`.execute(
      world.database.books.kysely,
    )
    return rows.map(({ line }) => line)
  },
}
