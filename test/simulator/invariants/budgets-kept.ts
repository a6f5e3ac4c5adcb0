import { sql } from 'kysely'
import type { Invariant } from './invariant.ts'

interface Use {
  readonly key_id: string
  readonly day: string
  readonly used: bigint
}

export const budgetsKept: Invariant = {
  sentence: 'No key has spent more on a day than its policy allows, by what its decisions say.',
  check: async ({ world, accounts }) => {
    const { rows } = await sql<Use>`
      select key_id, day::text, sum(usd_micros)::bigint as used from reservation
      where status <> 'released' and key_id is not null group by 1, 2 order by 1, 2`.execute(
      world.database.books.kysely,
    )
    const allowed = new Map(
      accounts.flatMap(({ keys }) => keys.map(({ id, dailyCents }) => [id, BigInt(dailyCents) * 10_000n])),
    )
    return rows
      .filter(({ key_id, used }) => used > (allowed.get(key_id) ?? used))
      .map(({ key_id, day, used }) => `${key_id} used ${used} of ${allowed.get(key_id)} on ${day}`)
  },
}
