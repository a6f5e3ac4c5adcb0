import { sql } from 'kysely'
import type { Invariant } from './invariant.ts'

interface Difference {
  readonly key_id: string
  readonly day: string
  readonly said: string
  readonly added: string
}

export const countersAddUp: Invariant = {
  sentence:
    'What a key has used of its budgets is what its decisions add up to, and what card networks took that nobody was asked for.',
  check: async ({ world }) => {
    const { rows } = await sql<Difference>`
      with added as (
        select k.key_id, r.day, sum(r.usd_micros) as micros, count(*) as count
        from reservation r cross join lateral unnest(key_path(r.key_id)) as k (key_id)
        where r.status <> 'released' and r.key_id is not null group by 1, 2
      )
      select coalesce(u.key_id, a.key_id) as key_id, coalesce(u.day, a.day)::text as day,
        format('%s in %s (%s in %s unasked)', u.used_micros, u.count, u.unasked_micros, u.unasked_count) as said,
        format('%s in %s', a.micros, a.count) as added
      from budget_usage u full join added a using (key_id, day)
      where (coalesce(u.used_micros - u.unasked_micros, 0), coalesce(u.count - u.unasked_count, 0))
        is distinct from (coalesce(a.micros, 0), coalesce(a.count, 0))`.execute(world.database.books.kysely)
    return rows.map(({ key_id, day, said, added }) => `${key_id} on ${day}: ${said}; its decisions: ${added}`)
  },
}
