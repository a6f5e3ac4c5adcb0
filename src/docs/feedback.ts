/** Feedback on the documentation: two counters a page, and nothing about who voted. May import the base and the database port. */
import { type Connection, callForRow, type Statement } from '../storage/database.ts'

/** What a reader may say of a page. */
export const votes = ['up', 'down'] as const

/** Both counters of a page. */
export interface Feedback {
  readonly page: string
  readonly up: number
  readonly down: number
}

const count: Statement = {
  name: 'docs_feedback_count',
  text: `
    insert into docs_feedback as f (page, up, down) values ($1, $2::int, 1 - $2::int)
    on conflict (page) do update set up = f.up + excluded.up, down = f.down + excluded.down
    returning up, down`,
}

/** Counts one vote. @returns the counters with it. */
export async function countVote(
  database: Connection,
  { page, vote }: { page: string; vote: (typeof votes)[number] },
): Promise<Feedback> {
  const row = await callForRow<{ up: bigint; down: bigint }>(database, count, [page, vote === 'up' ? 1 : 0])
  return { page, up: Number(row.up), down: Number(row.down) }
}
