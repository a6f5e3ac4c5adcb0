/** Reads an account's events, oldest first. */
import { sql } from 'kysely'
import { z } from 'zod'
import { pageMembers } from '../../core/base/page.ts'
import { Failure } from '../../core/failures/failure.ts'
import type { Connection } from '../../storage/database.ts'
import { eventType, type StoredEvent } from './catalogue.ts'

/** The position before the first event. */
const START = '0'

/** Request members of the list and of the stream. */
export const eventQuery = z.strictObject({
  type: z
    .string()
    .max(2_000)
    .transform((text) => text.split(',').map((type) => type.trim()))
    .pipe(z.array(eventType))
    .optional()
    .describe('One or several, separated by commas.'),
  after: z
    .string()
    .regex(/^(0|evt_[0-9a-z]{26})$/, 'must be the id of an event, evt_…, or 0')
    .optional()
    .describe('Id of an event, or `nextCursor`: only later ones. `0`: from the first.'),
  limit: pageMembers.limit,
})

/** The events that a caller sees. @property keyId a key sees its own; null: a person sees all of the account. */
export interface EventReader {
  readonly accountId: string
  readonly keyId: string | null
}

/** Finds the sequence of an event that the reader sees. @throws Failure `invalid_request`. */
export async function findSequence(
  { kysely }: Connection,
  { accountId, keyId }: EventReader,
  id: string,
): Promise<bigint> {
  if (id === START) return 0n
  const { rows } = await sql<{ sequence: bigint | null }>`
    select event_find(account_id, id) as sequence from event
    where id = ${id} and account_id = ${accountId} ${isOfKey(keyId)}`.execute(kysely)
  const sequence = rows[0]?.sequence ?? null
  if (sequence !== null) return sequence
  throw new Failure('invalid_request', 'after: no such event is kept.', {
    issues: [{ path: 'after', message: 'no such event is kept' }],
    hint: 'Send the id of an event that you received, or 0 to begin with the oldest one that is kept.',
  })
}

/** Reads events after a sequence. @param types null: all. */
export async function readEvents(
  { kysely }: Connection,
  { accountId, keyId }: EventReader,
  { after, types, limit }: { after: bigint; types: readonly string[] | null; limit: number },
): Promise<StoredEvent[]> {
  const isOfType = types === null ? sql`` : sql`and type = any (${[...types]}::text[])`
  const { rows } = await sql<StoredEvent>`
    select account_id, sequence, id, agent_id, type, object_kind, object_id, data, at, task from published_event
    where account_id = ${accountId} and last_sequence > ${after} and sequence > ${after} ${isOfKey(keyId)} ${isOfType}
    order by last_sequence, sequence limit ${limit}`.execute(kysely)
  return rows
}

/** The last event that the reader sees. */
export async function findLastEvent(
  { kysely }: Connection,
  { accountId, keyId }: EventReader,
): Promise<{ id: string; sequence: bigint } | undefined> {
  const { rows } = await sql<{ id: string; sequence: bigint }>`
    select id, sequence from published_event
    where account_id = ${accountId} ${isOfKey(keyId)}
    order by last_sequence desc, sequence desc limit 1`.execute(kysely)
  return rows[0]
}

function isOfKey(keyId: string | null) {
  return keyId === null ? sql`` : sql`and agent_id = ${keyId}`
}
