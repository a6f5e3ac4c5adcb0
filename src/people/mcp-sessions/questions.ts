/** Elicitations to clients: the answer arrives in a separate request, possibly at another instance. */
import { randomToken } from '../../core/base/ids.ts'
import { createPoller, type Waiters } from '../../core/base/poller.ts'
import type { Connection } from '../../storage/database.ts'
import type { McpSession } from './sessions.ts'

/** Poll interval for answers. */
const ANSWERS_MS = 200

/** Poll interval for cancellations at other instances. */
const CANCELLATIONS_MS = 1_000

/** @property requestId id of the client's call. */
interface Asking {
  readonly session: McpSession
  readonly requestId: string | number
}

/** Stores an elicitation. @returns the id for the client's answer. */
export async function openQuestion(
  database: Connection,
  { session, requestId, now }: Asking & { now: Date },
): Promise<string> {
  const id = randomToken(16)
  await database.kysely
    .insertInto('mcp_question')
    .values({
      id,
      session_id_hash: session.idHash,
      request_id: JSON.stringify(requestId),
      asked_at: now,
    })
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

/** Cancels a waiting call, wherever it waits. */
export async function cancelAsking(database: Connection, { session, requestId }: Asking): Promise<void> {
  await database.kysely
    .updateTable('mcp_question')
    .set({ cancelled: true })
    .where('session_id_hash', '=', session.idHash)
    .where('request_id', '=', JSON.stringify(requestId))
    .execute()
}

/** Deletes a question, once its call has ended. */
export async function closeQuestion(database: Connection, id: string): Promise<void> {
  await database.kysely.deleteFrom('mcp_question').where('id', '=', id).execute()
}

/** Waits for the answer. @returns undefined if the signal aborts or the session ends. */
export async function awaitAnswer(database: Connection, id: string, signal: AbortSignal): Promise<unknown> {
  return (await pollersFor(database).answers.until(id, signal))?.answer
}

/** Waits until the call is cancelled or its session has ended. @returns false if the signal aborts first. */
export async function awaitCancellation(
  database: Connection,
  id: string,
  signal: AbortSignal,
): Promise<boolean> {
  return (await pollersFor(database).cancellations.until(id, signal)) === true
}

interface Pollers {
  readonly answers: Waiters<{ answer: unknown }>
  readonly cancellations: Waiters<true>
}

/** Two pollers per database serve all waiting calls. */
const pollers = new WeakMap<Connection, Pollers>()

function pollersFor(database: Connection): Pollers {
  const known = pollers.get(database) ?? {
    answers: createPoller({ everyMs: ANSWERS_MS, look: answersAmong(database) }),
    cancellations: createPoller({ everyMs: CANCELLATIONS_MS, look: createCancelledReader(database) }),
  }
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

/** Returns cancelled questions, and those whose session was deleted. */
function createCancelledReader({ kysely }: Connection) {
  return async (ids: readonly string[]): Promise<ReadonlyMap<string, true>> => {
    const rows = await kysely
      .selectFrom('mcp_question')
      .select('id')
      .where('id', 'in', ids)
      .where('cancelled', '=', false)
      .execute()
    const waiting = new Set(rows.map(({ id }) => id))
    return new Map(ids.flatMap((id) => (waiting.has(id) ? [] : [[id, true] as const])))
  }
}
