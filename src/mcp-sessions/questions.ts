/** Elicitations to clients: the answer arrives in a separate request, possibly at another instance. */
import { randomToken } from '../base/ids.ts'
import { createPoller, type Waiters } from '../base/poller.ts'
import type { Connection } from '../storage/database.ts'
import type { McpSession } from './sessions.ts'

/** Poll interval for answers. */
const POLL_INTERVAL_MS = 200

/** Stores an elicitation. @returns the id for the client's answer. */
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

/** Stores the first answer; answers without a waiting call are ignored. */
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

/** One poller per database serves all waiting calls. */
const pollers = new WeakMap<Connection, Waiters<{ answer: unknown }>>()

function pollerFor(database: Connection): Waiters<{ answer: unknown }> {
  const known =
    pollers.get(database) ?? createPoller({ everyMs: POLL_INTERVAL_MS, look: answersAmong(database) })
  pollers.set(database, known)
  return known
}

/** Returns answered questions; a missing row means that its session was deleted. */
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

/** Waits for the answer and deletes the question. @returns undefined if the signal aborts or the session ends. */
export async function awaitAnswer(database: Connection, id: string, signal: AbortSignal): Promise<unknown> {
  try {
    return (await pollerFor(database).until(id, signal))?.answer
  } finally {
    await database.kysely.deleteFrom('mcp_question').where('id', '=', id).execute()
  }
}
