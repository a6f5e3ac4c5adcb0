import { sql } from 'kysely'
import type { Invariant } from './invariant.ts'

export const nothingHeld: Invariant = {
  sentence: 'Nothing is held once everything has ended.',
  check: async ({ world }) => {
    const { rows } = await sql<{ line: string }>`
      select account || ' ' || asset || ' ' || units as line from balance
      where account like 'acct\\_%:held' and units <> 0 order by 1`.execute(world.database.books.kysely)
    return rows.map(({ line }) => line)
  },
}
