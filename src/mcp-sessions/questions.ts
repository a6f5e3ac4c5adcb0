/** What a client is asked while its call waits: the answer comes with a request of its own, perhaps to another instance. */
import { randomToken } from '../base/ids.ts'
import { createWaiters, type Waiters } from '../base/waiters.ts'
import type { Connection } from '../storage/database.ts'
import type { McpSession } from './sessions.ts'

/** How often it is looked whether an answer is there. */
const LOOK_MS = 200

/** Opens a question to a session's client. @returns the id that its answer names. */
export async function openQuestion(
  database: Connection,
  { session, now }: { session: McpSession; now: Date },
): Promise<string> {
  const id = randomToken(16)
  await database.kysely
    .insertInto('mcp_question')
    .values({ id, session_id_hash: session.idHash, asked_at: now })
    .execute()
  return id
}

/** Keeps an answer for whoever waits for it: the first one counts, and one that nobody waits for is nothing. */
export async function answerQuestion(
  database: Connection,
  { session, id, answer }: { session: McpSession; id: string; answer: unknown },
): Promise<void> {
  await database.kysely
    .updateTable('mcp_question')
    .set({ answer: JSON.stringify(answer) })
    .where('id', '=', id)
    .where('session_id_hash', '=', session.idHash)
    .where('answer', 'is', null)
    .execute()
}

/** One look serves all who wait on a database. */
const lookouts = new WeakMap<Connection, Waiters<{ answer: unknown }>>()

function lookoutOf(database: Connection): Waiters<{ answer: unknown }> {
  const known = lookouts.get(database) ?? createWaiters({ everyMs: LOOK_MS, look: answersAmong(database) })
  lookouts.set(database, known)
  return known
}

/** What was answered; one that is not there any more went with its session. */
function answersAmong({ kysely }: Connection) {
  return async (ids: readonly string[]): Promise<ReadonlyMap<string, { answer: unknown }>> => {
    const rows = await kysely
      .selectFrom('mcp_question')
      .select(['id', 'answer'])
      .where('id', 'in', ids)
      .execute()
    const found = new Map(rows.map(({ id, answer }) => [id, answer] as const))
    return new Map(
      ids.flatMap((id) => (found.get(id) === null ? [] : [[id, { answer: found.get(id) }] as const])),
    )
  }
}

/** Waits for the answer and takes it. @returns undefined where the signal ends the wait, or the session has ended. */
export async function awaitAnswer(database: Connection, id: string, signal: AbortSignal): Promise<unknown> {
  try {
    return (await lookoutOf(database).until(id, signal))?.answer
  } finally {
    await database.kysely.deleteFrom('mcp_question').where('id', '=', id).execute()
  }
}
