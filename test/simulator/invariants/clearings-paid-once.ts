import { sql } from 'kysely'
import type { Invariant } from './invariant.ts'

interface Paid {
  readonly id: string
  readonly cleared: bigint
  readonly cash: bigint
  readonly settled: bigint
  readonly parts: bigint
}

export const clearingsPaidOnce: Invariant = {
  sentence: 'A card purchase costs what the card network has cleared, once.',
  check: async ({ world }) => {
    // Each part that is paid in tokens is rounded up to a cent. What was refunded or is owed is judged elsewhere.
    const { rows } = await sql<Paid>`
      select a.id, a.cleared,
        (select coalesce(sum(p.units), 0)::bigint from ledger_transaction t join posting p on p.transaction_id = t.id
          where t.reference = a.id and t.kind = 'card_clearing' and p.destination = 'external:cards' and p.asset = 'USD') as cash,
        (select coalesce(sum(s.owed_units), 0)::bigint from card_settlement s where s.authorization_id = a.id) as settled,
        (select count(*) from card_settlement s where s.authorization_id = a.id) as parts
      from card_authorization a
      where a.refunded = 0 and a.shortfall = 0 and not exists (
        select from debt d where d.reference = a.id or d.reference in (
          select s.id from card_settlement s where s.authorization_id = a.id))
        and not exists (select from card_event e where e.authorization_id = a.id and e.kind in ('refund', 'return_reversal'))
      order by a.id`.execute(world.database.books.kysely)
    return rows.flatMap(({ id, cleared, cash, settled, parts }) => {
      const paid = cash + settled
      if (paid >= cleared && paid <= cleared + parts) return []
      return [`${id}: cleared ${cleared} cents, paid ${cash} in cash and ${settled} in tokens`]
    })
  },
}
