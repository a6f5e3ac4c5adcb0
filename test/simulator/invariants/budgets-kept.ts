import { sql } from 'kysely'
import type { Invariant } from './invariant.ts'

interface Use {
  readonly key_id: string
  readonly day: string
  readonly used: bigint
}

export const budgetsKept: Invariant = {
  sentence:
    'No key has spent more on a day than its policy allows, with all keys below it: what they moved, and what cards cleared of their approvals.',
  check: async ({ world, accounts }) => {
    const { rows } = await sql<Use>`
      select k.key_id, r.day::text, sum(coalesce(least(a.cleared, a.approved) * 10000, r.usd_micros))::bigint as used
      from reservation r cross join lateral unnest(key_path(r.key_id)) as k (key_id)
        left join card_authorization a on a.decision_id = r.decision_id
      where r.status <> 'released' and r.key_id is not null group by 1, 2 order by 1, 2`.execute(
      world.database.books.kysely,
    )
    const allowed = new Map(
      accounts.flatMap(({ keys }) => keys.map(({ id, dailyCents }) => [id, BigInt(dailyCents) * 10_000n])),
    )
    const found: string[] = []
    for (const { key_id, day, used } of rows) {
      const most = allowed.get(key_id) ?? used
      if (used <= most) continue
      const spends = await sql<{ line: string }>`
        select concat_ws(' ', d.at, d.operation, r.status, r.usd_micros, d.violations, d.facts) as line
        from reservation r join decision d on d.id = r.decision_id
        where ${key_id} = any (key_path(r.key_id)) and r.day = ${day} and r.status <> 'released' order by d.at`.execute(
        world.database.books.kysely,
      )
      found.push(
        `${key_id} used ${used} of ${most} on ${day}:\n${spends.rows.map(({ line }) => line).join('\n')}`,
      )
    }
    return found
  },
}
