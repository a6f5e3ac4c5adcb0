import { sql } from 'kysely'
import { type Invariant, show } from './invariant.ts'

interface Row {
  readonly id: string
  readonly credited: bigint
  readonly returned: bigint
  readonly owed: bigint
}

export const depositsBooked: Invariant = {
  sentence: 'What the bank has paid in is credited once, and is taken back or owed once it was returned.',
  check: async ({ world, deposits }) => {
    const { rows } = await sql<Row>`
      with moved as (
        select t.reference, t.kind, sum(p.units)::bigint as units
        from ledger_transaction t join posting p on p.transaction_id = t.id
        where t.kind in ('deposit', 'deposit_return') group by 1, 2
      )
      select d.id, coalesce(c.units, 0) as credited, coalesce(r.units, 0) as returned, coalesce(o.units, 0) as owed
      from deposit d
        left join moved c on c.reference = d.id and c.kind = 'deposit'
        left join moved r on r.reference = d.id and r.kind = 'deposit_return'
        left join debt o on o.id = 'deposit:' || d.id order by 1`.execute(world.database.books.kysely)
    return deposits.flatMap(({ id, cents, isReturned, isContradicted }) => {
      const row = rows.find((one) => one.id === id)
      const back = row === undefined ? 0n : row.returned + row.owed
      if (isContradicted && (row?.credited ?? 0n) === 0n && back === 0n) return []
      // Cash becomes tokens of the same worth.
      const isRight = row?.credited === BigInt(cents) * 10_000n && back === (isReturned ? BigInt(cents) : 0n)
      return isRight
        ? []
        : [`${id}: ${cents} cents, ${isReturned ? '' : 'not '}returned; ${show(row ?? null)}`]
    })
  },
}
