/**
 * Sign-ins of programs on other devices, which a signed-in person allows on a page. The program holds a secret; the code in
 * the page's address is known to everyone who has the link, and grants nothing. The session is opened when it is allowed, so
 * that whatever ends sessions ends it too, and its token is collected once. @see https://www.rfc-editor.org/rfc/rfc8628
 */
import { timingSafeEqual } from 'node:crypto'
import { randomToken } from '../../../core/base/ids.ts'
import { Failure } from '../../../core/failures/failure.ts'
import type { Connection } from '../../../storage/database.ts'
import { codeHash } from '../user-code.ts'

/** Time within which a person must decide. */
const TTL_MS = 10 * 60 * 1000
/** Time within which the program must collect its session. */
const COLLECT_MS = 2 * 60 * 1000

export interface DeviceSignIn {
  /** Proposed by the program, one visible line. */
  readonly name: string
  /** Network address of the program. */
  readonly address: string
  /** `expired`: it was not decided, or the session not collected, in time. */
  readonly status: 'pending' | 'allowed' | 'rejected' | 'collected' | 'expired'
  readonly createdAt: Date
  readonly expiresAt: Date
}

const columns = ['name', 'address', 'status', 'created_at', 'expires_at', 'secret_hash'] as const

/** @returns code and secret, of which only hashes are stored. */
export async function openDeviceSignIn(
  { kysely }: Connection,
  { name, address, at }: { name: string; address: string; at: Date },
): Promise<{ code: string; secret: string; expiresAt: Date }> {
  const [code, secret] = [randomToken(16), randomToken(32)]
  const expiresAt = new Date(at.getTime() + TTL_MS)
  await kysely
    .insertInto('device_sign_in')
    .values({
      code_hash: codeHash(code),
      secret_hash: codeHash(secret),
      name,
      address,
      created_at: at,
      expires_at: expiresAt,
    })
    .execute()
  return { code, secret, expiresAt }
}

/** @param secret the program's secret; absent for the person's page. @throws Failure `not_found`. */
export async function readDeviceSignIn(
  { kysely }: Connection,
  { code, secret, now }: { code: string; secret?: string; now: Date },
): Promise<DeviceSignIn> {
  const row = await kysely
    .selectFrom('device_sign_in')
    .select(columns)
    .where('code_hash', '=', codeHash(code))
    .executeTakeFirst()
  const isKnown = row !== undefined && (secret === undefined || isSecret(secret, row.secret_hash))
  if (!isKnown)
    throw new Failure('not_found', 'No program waits under this code.', {
      hint: 'Start again: "bursar login".',
    })
  const { name, address, status, created_at: createdAt, expires_at: expiresAt } = row
  const isOpen = status === 'pending' || status === 'allowed'
  return { name, address, status: isOpen && expiresAt <= now ? 'expired' : status, createdAt, expiresAt }
}

/** Decides a pending sign-in, once. @param sessionId the session if it is allowed. @throws Failure `not_found`, `conflict`. */
export async function decideDeviceSignIn(
  database: Connection,
  { code, sessionId, now }: { code: string; sessionId: string | null; now: Date },
): Promise<void> {
  const decision =
    sessionId === null
      ? { status: 'rejected' as const }
      : {
          status: 'allowed' as const,
          session_id: sessionId,
          expires_at: new Date(now.getTime() + COLLECT_MS),
        }
  const decided = await database.kysely
    .updateTable('device_sign_in')
    .set(decision)
    .where('code_hash', '=', codeHash(code))
    .where('status', '=', 'pending')
    .where('expires_at', '>', now)
    .returning('status')
    .executeTakeFirst()
  if (decided !== undefined) return
  const { status: reason } = await readDeviceSignIn(database, { code, now })
  throw new Failure('conflict', `This sign-in is ${reason === 'collected' ? 'complete' : reason}.`, {
    reason,
    hint: 'A sign-in is decided once, within ten minutes. Start again: "bursar login".',
  })
}

/** Collects the session of an allowed sign-in, once. @returns its id; undefined if there is none to collect any more. */
export async function collectDeviceSession(
  { kysely }: Connection,
  { code, now }: { code: string; now: Date },
): Promise<string | undefined> {
  const collected = await kysely
    .updateTable('device_sign_in')
    .set({ status: 'collected' })
    .where('code_hash', '=', codeHash(code))
    .where('status', '=', 'allowed')
    .where('expires_at', '>', now)
    .returning('session_id')
    .executeTakeFirst()
  return collected?.session_id ?? undefined
}

/** Deletes expired sign-ins, but not before their programs have learned the decision. */
export async function sweepDeviceSignIns({ kysely }: Connection, now: Date): Promise<void> {
  const old = new Date(now.getTime() - TTL_MS)
  await kysely.deleteFrom('device_sign_in').where('expires_at', '<', old).execute()
}

function isSecret(given: string, storedHash: Uint8Array): boolean {
  return timingSafeEqual(codeHash(given), storedHash)
}
