/**
 * The second factor: TOTP and recovery codes. Only this file writes its tables, and only POST /api/security/mfa calls
 * these functions (spec 5.2.6). @see https://www.rfc-editor.org/rfc/rfc6238
 */

import { randomToken } from '../../core/base/ids.ts'
import { random } from '../../core/base/random.ts'
import { keyedHash, seal, unseal } from '../../core/base/seal.ts'
import { Failure } from '../../core/failures/failure.ts'
import type { Connection } from '../../storage/database.ts'

/** Clock tolerance in seconds: one step either way. */
const TOLERANCE_SECONDS = 30
const RECOVERY_CODES = 10
/** As long as the hash of HMAC-SHA-1. @see https://www.rfc-editor.org/rfc/rfc4226#section-4 */
const SECRET_BYTES = 20

interface MfaParts {
  readonly database: Connection
  readonly settings: { readonly dataKey: Uint8Array }
}

export interface MfaStatus {
  readonly status: 'none' | 'pending' | 'active'
  /** Number of unused recovery codes. */
  readonly recoveryCodesLeft: number
}

export async function mfaStatus(database: Connection, accountId: string): Promise<MfaStatus> {
  const row = await database.kysely
    .selectFrom('mfa')
    .select('status')
    .where('account_id', '=', accountId)
    .executeTakeFirst()
  const codes = await database.kysely
    .selectFrom('mfa_recovery_code')
    .select('code_hash')
    .where('account_id', '=', accountId)
    .where('used_at', 'is', null)
    .execute()
  return { status: row?.status ?? 'none', recoveryCodesLeft: codes.length }
}

/**
 * Starts an enrollment, replacing a pending one. @returns the base32 secret, shown once. @throws Failure `conflict`
 * when a second factor is active.
 */
export async function beginEnrollment(
  { database, settings }: MfaParts,
  { accountId, at }: { accountId: string; at: Date },
): Promise<string> {
  const { ScureBase32Plugin } = await import('otplib')
  const secret = new ScureBase32Plugin().encode(random.bytes(SECRET_BYTES))
  const sealed = seal(settings.dataKey, { purpose: 'mfa', owner: accountId }, secret)
  const begun = await database.kysely
    .insertInto('mfa')
    .values({
      account_id: accountId,
      sealed_secret: sealed,
      status: 'pending',
      created_at: at,
      activated_at: null,
    })
    .onConflict((conflict) =>
      conflict
        .column('account_id')
        .doUpdateSet({ sealed_secret: sealed, created_at: at })
        .where('mfa.status', '=', 'pending'),
    )
    .returning('account_id')
    .executeTakeFirst()
  if (begun !== undefined) return secret
  throw new Failure('conflict', 'A second factor is active.', {
    hint: 'Disable it first: POST /api/security/mfa {"action":"disable","code":"…"}.',
  })
}

/** Consumes a TOTP code. @returns false if it is wrong or used, or no such factor exists. */
export async function useTotp(
  { database, settings }: MfaParts,
  {
    accountId,
    code,
    status,
    at,
  }: { accountId: string; code: string; status: 'pending' | 'active'; at: Date },
): Promise<boolean> {
  const row = await database.kysely
    .selectFrom('mfa')
    .select(['sealed_secret', 'last_time_step'])
    .where('account_id', '=', accountId)
    .where('status', '=', status)
    .executeTakeFirst()
  if (row === undefined) return false
  const { verify } = await import('otplib')
  const verdict = await verify({
    secret: unseal(settings.dataKey, { purpose: 'mfa', owner: accountId }, row.sealed_secret),
    token: code,
    epoch: Math.floor(at.getTime() / 1000),
    epochTolerance: TOLERANCE_SECONDS,
    afterTimeStep: Number(row.last_time_step),
  })
  if (!verdict.valid || !('timeStep' in verdict)) return false
  // The conditional update decides between concurrent requests with one code.
  const spent = await database.kysely
    .updateTable('mfa')
    .set({ last_time_step: BigInt(verdict.timeStep) })
    .where('account_id', '=', accountId)
    .where('status', '=', status)
    .where('last_time_step', '<', BigInt(verdict.timeStep))
    .returning('account_id')
    .executeTakeFirst()
  return spent !== undefined
}

/** Consumes a recovery code. @returns false if it is wrong or used. */
export async function useRecoveryCode(
  { database, settings }: MfaParts,
  { accountId, recoveryCode, at }: { accountId: string; recoveryCode: string; at: Date },
): Promise<boolean> {
  const spent = await database.kysely
    .updateTable('mfa_recovery_code')
    .set({ used_at: at })
    .where('account_id', '=', accountId)
    .where('code_hash', '=', hashRecoveryCode(settings.dataKey, accountId, recoveryCode))
    .where('used_at', 'is', null)
    .returning('account_id')
    .executeTakeFirst()
  return spent !== undefined
}

/** Activates the pending factor. @returns its recovery codes, shown once. */
export async function activate(
  { database, settings }: MfaParts,
  { accountId, at }: { accountId: string; at: Date },
): Promise<readonly string[]> {
  await database.kysely
    .updateTable('mfa')
    .set({ status: 'active', activated_at: at })
    .where('account_id', '=', accountId)
    .execute()
  const codes = Array.from({ length: RECOVERY_CODES }, newRecoveryCode)
  await database.kysely
    .insertInto('mfa_recovery_code')
    .values(
      codes.map((code) => ({
        account_id: accountId,
        code_hash: hashRecoveryCode(settings.dataKey, accountId, code),
        used_at: null,
      })),
    )
    .execute()
  return codes
}

/** Removes the second factor and its recovery codes. */
export async function disable(database: Connection, accountId: string): Promise<void> {
  await database.kysely.deleteFrom('mfa').where('account_id', '=', accountId).execute()
}

/**
 * 120 random bits in six groups, without ambiguous letters. Above 112 bits a keyed hash suffices and no password hash
 * is needed. @see https://github.com/OWASP/ASVS (6.5.2)
 */
function newRecoveryCode(): string {
  const bytes = Buffer.from(randomToken(24), 'base64url')
  const letters = [...bytes].map((byte) => 'abcdefghjkmnpqrstvwxyz0123456789'.charAt(byte & 31)).join('')
  return letters.replace(/(.{4})(?=.)/g, '$1-')
}

function hashRecoveryCode(dataKey: Uint8Array, accountId: string, code: string): string {
  const written = code.toLowerCase().replaceAll(/[^0-9a-z]/g, '')
  return keyedHash(dataKey, 'recovery code', `${accountId}:${written}`)
}
