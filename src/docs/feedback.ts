/** Feedback on the documentation: two counters a page, and nothing about who voted. May import the base and the database port. */
import { z } from 'zod'
import type { Connection, Statement } from '../storage/database.ts'

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

const counters = z.tuple([z.object({ up: z.coerce.number(), down: z.coerce.number() })])

/** Counts one vote. @returns the counters with it. */
export async function countVote(
  database: Connection,
  { page, vote }: { page: string; vote: (typeof votes)[number] },
): Promise<Feedback> {
  const [row] = counters.parse(await database.call<unknown>(count, [page, vote === 'up' ? 1 : 0]))
  return { page, ...row }
}
