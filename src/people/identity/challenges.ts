/** Challenges: single-use rows in the shared store. The first caller takes one; no second caller can. */
import type { NewId } from '../../core/base/ids.ts'
import type { Json } from '../../core/base/json.ts'
import type { Connection } from '../../storage/database.ts'
import type { ChallengeTable } from '../../storage/schema.ts'

export type ChallengeKind = ChallengeTable['kind']

/** @property subject value by which the client finds it. */
export interface Challenge {
  readonly id: string
  readonly subject: string
  /** Account it was opened for; null if unknown. */
  readonly accountId: string | null
  readonly facts: Json
}

/** @param seconds lifetime. @param challenge.id id that was allocated earlier, because the facts depend on it. */
export async function openChallenge(
  { database, newId }: { database: Connection; newId: NewId },
  challenge: Omit<Challenge, 'id'> & { id?: string; kind: ChallengeKind; at: Date; seconds: number },
): Promise<{ id: string; expiresAt: Date }> {
  const { kind, subject, accountId, facts, at, seconds, id = newId('chal', at) } = challenge
  const expiresAt = new Date(at.getTime() + seconds * 1000)
  await database.kysely
    .insertInto('challenge')
    .values({
      id,
      kind,
      subject,
      account_id: accountId,
      facts: JSON.stringify(facts),
      created_at: at,
      expires_at: expiresAt,
    })
    .execute()
  return { id, expiresAt }
}

/** Finds the newest open challenge of a subject with attempts left. */
export async function findOpenChallenge(
  { kysely }: Connection,
  { kind, subject, now, most }: { kind: ChallengeKind; subject: string; now: Date; most: number },
): Promise<{ id: string; facts: Json; expiresAt: Date } | undefined> {
  const row = await kysely
    .selectFrom('challenge')
    .select(['id', 'facts', 'expires_at'])
    .where('kind', '=', kind)
    .where('subject', '=', subject)
    .where('tries', '<', most)
    .where('expires_at', '>', now)
    .orderBy('expires_at', 'desc')
    .limit(1)
    .executeTakeFirst()
  return row && { id: row.id, facts: row.facts, expiresAt: row.expires_at }
}

/** Takes a challenge exclusively. @returns undefined if it is unknown, taken or expired. */
export async function takeChallenge(
  database: Connection,
  { kind, by, now }: { kind: ChallengeKind; by: { id: string } | { subject: string }; now: Date },
): Promise<Challenge | undefined> {
  const query = database.kysely.deleteFrom('challenge').where('kind', '=', kind)
  const row = await ('id' in by ? query.where('id', '=', by.id) : query.where('subject', '=', by.subject))
    .returning(['id', 'subject', 'account_id', 'facts', 'expires_at'])
    .executeTakeFirst()
  return row === undefined || row.expires_at <= now ? undefined : parseChallenge(row)
}

/**
 * Counts an attempt at a challenge, which stays open. @returns undefined if it is unknown, expired or out of
 * attempts.
 */
export async function countChallengeAttempt(
  database: Connection,
  { kind, id, now, most }: { kind: ChallengeKind; id: string; now: Date; most: number },
): Promise<Challenge | undefined> {
  const row = await database.kysely
    .updateTable('challenge')
    .set((set) => ({ tries: set('tries', '+', 1) }))
    .where('kind', '=', kind)
    .where('id', '=', id)
    .where('tries', '<', most)
    .where('expires_at', '>', now)
    .returning(['id', 'subject', 'account_id', 'facts'])
    .executeTakeFirst()
  return row === undefined ? undefined : parseChallenge(row)
}

/** Closes all challenges of a subject, of which only the newest counts. */
export async function closeChallenges(
  database: Connection,
  { kind, subject }: { kind: ChallengeKind; subject: string },
): Promise<void> {
  await database.kysely
    .deleteFrom('challenge')
    .where('kind', '=', kind)
    .where('subject', '=', subject)
    .execute()
}

/** Deletes expired challenges. */
export async function sweepChallenges(database: Connection, now: Date): Promise<void> {
  await database.kysely.deleteFrom('challenge').where('expires_at', '<', now).execute()
}

function parseChallenge(row: {
  id: string
  subject: string
  account_id: string | null
  facts: Json
}): Challenge {
  return { id: row.id, subject: row.subject, accountId: row.account_id, facts: row.facts }
}
