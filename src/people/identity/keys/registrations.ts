/**
 * Registrations that an agent starts and an owner decides on a page, as a device authorization does. The agent has a
 * secret; the code in the page's address is known to everyone who has the link, and grants nothing without a session. The
 * first decision is final. @see https://www.rfc-editor.org/rfc/rfc8628
 */
import { randomToken } from '../../../core/base/ids.ts'
import { Failure } from '../../../core/failures/failure.ts'
import type { Connection } from '../../../storage/database.ts'
import { codeHash } from '../user-code.ts'

/** Lifetime of a registration. */
const TTL_MS = 15 * 60 * 1000

export interface Registration {
  /** Proposed by the agent, one visible line. */
  readonly name: string
  /** base64url. */
  readonly publicKey: string
  /** `expired`: it was not decided in time. */
  readonly status: 'pending' | 'approved' | 'rejected' | 'expired'
  readonly createdAt: Date
  readonly expiresAt: Date
}

/** @returns code and secret, of which only hashes are stored. @throws Failure `conflict` for a key that was used before. */
export async function openRegistration(
  { kysely }: Connection,
  { name, publicKey, at }: { name: string; publicKey: string; at: Date },
): Promise<{ code: string; secret: string; expiresAt: Date }> {
  const [code, secret] = [randomToken(16), randomToken(32)]
  const expiresAt = new Date(at.getTime() + TTL_MS)
  const opened = await kysely
    .insertInto('agent_registration')
    .values({
      code_hash: codeHash(code),
      secret_hash: codeHash(secret),
      name,
      public_key: publicKey,
      created_at: at,
      expires_at: expiresAt,
    })
    .onConflict((conflict) => conflict.doNothing())
    .returning('code_hash')
    .executeTakeFirst()
  if (opened !== undefined) return { code, secret, expiresAt }
  throw new Failure('conflict', 'A registration of this public key was started before.', {
    hint: 'Create a new key pair for each registration.',
  })
}

/** @param secret the agent's secret; absent for the owner's page. @throws Failure `not_found`. */
export async function readRegistration(
  { kysely }: Connection,
  { code, secret, now }: { code: string; secret?: string; now: Date },
): Promise<Registration> {
  const query = kysely
    .selectFrom('agent_registration')
    .select(['name', 'public_key', 'status', 'created_at', 'expires_at'])
    .where('code_hash', '=', codeHash(code))
  const row = await (secret === undefined
    ? query
    : query.where('secret_hash', '=', codeHash(secret))
  ).executeTakeFirst()
  if (row === undefined)
    throw new Failure('not_found', 'No agent waits under this code.', {
      hint: 'Start again: "bursar agent register".',
    })
  return {
    name: row.name,
    publicKey: row.public_key,
    status: row.status === 'pending' && row.expires_at <= now ? 'expired' : row.status,
    createdAt: row.created_at,
    expiresAt: row.expires_at,
  }
}

/** Decides a pending registration of this key, once. @throws Failure `not_found`, `conflict`. */
export async function decideRegistration(
  database: Connection,
  {
    code,
    publicKey,
    status,
    now,
  }: { code: string; publicKey: string; status: 'approved' | 'rejected'; now: Date },
): Promise<void> {
  const decided = await database.kysely
    .updateTable('agent_registration')
    .set({ status })
    .where('code_hash', '=', codeHash(code))
    .where('public_key', '=', publicKey)
    .where('status', '=', 'pending')
    .where('expires_at', '>', now)
    .returning('status')
    .executeTakeFirst()
  if (decided !== undefined) return
  const { status: reason } = await readRegistration(database, { code, now })
  const why = reason === 'pending' ? 'belongs to another public key' : `is ${reason}`
  throw new Failure('conflict', `This registration ${why}.`, {
    reason,
    hint: 'A registration is decided once, within 15 minutes. Start again: "bursar agent register".',
  })
}

/** Deletes expired registrations, but not before their agents have learned the decision. */
export async function sweepRegistrations({ kysely }: Connection, now: Date): Promise<void> {
  const old = new Date(now.getTime() - TTL_MS)
  await kysely.deleteFrom('agent_registration').where('expires_at', '<', old).execute()
}
