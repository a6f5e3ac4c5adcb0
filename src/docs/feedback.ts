/**
 * Documentation feedback: two counters per page, without data about voters. May import the base and the database
 * port.
 */
import { z } from 'zod'
import type { Connection, Statement } from '../storage/database.ts'

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

const counters = z.tuple([z.object({ up: z.coerce.number(), down: z.coerce.number() })])

/** @returns the updated counters. */
export async function countVote(
  database: Connection,
  { page, vote }: { page: string; vote: (typeof votes)[number] },
): Promise<Feedback> {
  const [row] = counters.parse(await database.call<unknown>(count, [page, vote === 'up' ? 1 : 0]))
  return { page, ...row }
}
