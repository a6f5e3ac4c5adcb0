import { sql } from 'kysely'
import type { Invariant } from './invariant.ts'

export const nothingBelowZero: Invariant = {
  sentence: 'No balance of an owner is below zero.',
  check: async ({ world }) => {
    const { rows } = await sql<{ line: string }>`
      select account || ' ' || asset || ' ' || units as line from balance where units < 0 order by 1`.execute(
      world.database.books.kysely,
    )
    return rows.map(({ line }) => line)
  },
}
