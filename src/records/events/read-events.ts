/** Reads an account's events, oldest first. */
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
  const query = kysely
    .selectFrom('event')
    .select('sequence')
    .where('id', '=', id)
    .where('account_id', '=', accountId)
  const row = await (keyId === null ? query : query.where('agent_id', '=', keyId)).executeTakeFirst()
  if (row !== undefined) return row.sequence
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
  let query = kysely
    .selectFrom('event')
    .selectAll()
    .where('account_id', '=', accountId)
    .where('sequence', '>', after)
    .orderBy('sequence')
    .limit(limit)
  if (keyId !== null) query = query.where('agent_id', '=', keyId)
  if (types !== null) query = query.where('type', 'in', [...types])
  return query.execute()
}

/** The last event that the reader sees. */
export async function findLastEvent(
  { kysely }: Connection,
  { accountId, keyId }: EventReader,
): Promise<{ id: string; sequence: bigint } | undefined> {
  const query = kysely
    .selectFrom('event')
    .select(['id', 'sequence'])
    .where('account_id', '=', accountId)
    .orderBy('sequence', 'desc')
    .limit(1)
  return (keyId === null ? query : query.where('agent_id', '=', keyId)).executeTakeFirst()
}
