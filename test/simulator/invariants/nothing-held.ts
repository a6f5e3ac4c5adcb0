import { sql } from 'kysely'
import type { Invariant } from './invariant.ts'

export const nothingHeld: Invariant = {
  sentence:
    'Nothing is held once everything has ended, but for settlements that the chain refuses, which are owed.',
  check: async ({ world }) => {
    const { rows } = await sql<{ line: string }>`
      with excused as (
        select s.account_id || ':' || s.place || ':held' as account, s.asset, s.units from card_settlement s
        where s.status = 'refused'
      )
      select b.account || ' ' || b.asset || ' ' || b.units || ', excused ' || coalesce(sum(e.units), 0) as line
      from balance b left join excused e on e.account = b.account and e.asset = b.asset
      where b.account like 'acct\\_%:held' and b.units <> 0
      group by b.account, b.asset, b.units having b.units <> coalesce(sum(e.units), 0) order by 1`.execute(
      world.database.books.kysely,
    )
    return rows.map(({ line }) => line)
  },
}
