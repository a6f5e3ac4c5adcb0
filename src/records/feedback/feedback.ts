/**
 * Documentation feedback: two counters per page, without data about voters. May import the base and the database
 * port.
 */
import { type Connection, callForRow, type Statement } from '../../storage/database.ts'

export const votes = ['up', 'down'] as const

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

/** @returns the updated counters. */
export async function countVote(
  database: Connection,
  { page, vote }: { page: string; vote: (typeof votes)[number] },
): Promise<Feedback> {
  const row = await callForRow<{ up: bigint; down: bigint }>(database, count, [page, vote === 'up' ? 1 : 0])
  return { page, up: Number(row.up), down: Number(row.down) }
}
