import { sql } from 'kysely'
import type { Invariant } from './invariant.ts'

interface AccountUse {
  readonly account_id: string
  readonly day: string
  readonly used: bigint
}

export const ownerCapsKept: Invariant = {
  sentence: 'The keys of an account together have spent no more on a day than its owner allows all of them.',
  check: async ({ world, accounts }) => {
    const { rows } = await sql<AccountUse>`
      select r.account_id, r.day::text,
        sum(coalesce(least(a.cleared, a.approved) * 10000, r.usd_micros))::bigint as used
      from reservation r left join card_authorization a on a.decision_id = r.decision_id
      where r.status <> 'released' and r.key_id is not null group by 1, 2 order by 1, 2`.execute(
      world.database.books.kysely,
    )
    return rows.flatMap(({ account_id, day, used }) => {
      const cap = accounts.find(({ id }) => id === account_id)?.capCents
      if (cap === undefined || cap === null || used <= BigInt(cap) * 10_000n) return []
      return [`${account_id} used ${used} of ${cap} cents on ${day}`]
    })
  },
}
