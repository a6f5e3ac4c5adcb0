/** Challenges: single-use rows in the shared store. Whoever takes one first has it; nobody has it twice. */
import type { NewId } from '../base/ids.ts'
import type { Json } from '../base/json.ts'
import type { Connection } from '../storage/database.ts'
import type { ChallengeTable } from '../storage/schema.ts'

/** What a challenge is for. */
export type ChallengeKind = ChallengeTable['kind']

/** An open challenge. @property subject what its client shows to find it. */
export interface Challenge {
  readonly id: string
  readonly subject: string
  /** Whom it was opened for; null where that is not known. */
  readonly accountId: string | null
  readonly facts: Json
}

/** Opens a challenge. @param seconds its life. @param challenge.id where it was given out before: its facts may depend on it. */
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

/** Takes a challenge, so that nobody else can. @returns undefined where it is not known, was taken, or has ended. */
export async function takeChallenge(
  database: Connection,
  { kind, by, now }: { kind: ChallengeKind; by: { id: string } | { subject: string }; now: Date },
): Promise<Challenge | undefined> {
  const query = database.kysely.deleteFrom('challenge').where('kind', '=', kind)
  const row = await ('id' in by ? query.where('id', '=', by.id) : query.where('subject', '=', by.subject))
    .returning(['id', 'subject', 'account_id', 'facts', 'expires_at'])
    .executeTakeFirst()
  return row === undefined || row.expires_at <= now ? undefined : challengeOf(row)
}

/** Counts a try at a challenge, which stays open. @returns undefined where it is not known, has ended, or has no tries left. */
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
  return row === undefined ? undefined : challengeOf(row)
}

/** Closes every challenge of a subject: only the newest counts. */
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

/** Forgets challenges that have ended. */
export async function sweepChallenges(database: Connection, now: Date): Promise<void> {
  await database.kysely.deleteFrom('challenge').where('expires_at', '<', now).execute()
}

function challengeOf(row: {
  id: string
  subject: string
  account_id: string | null
  facts: Json
}): Challenge {
  return { id: row.id, subject: row.subject, accountId: row.account_id, facts: row.facts }
}
