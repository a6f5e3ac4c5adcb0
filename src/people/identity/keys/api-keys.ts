/**
 * Developer API keys: a secret shown once and stored as its SHA-256. The secret has 256 random bits, so a plain hash
 * is sufficient. It ends with a checksum, by which a key that was cut or mistyped is known as such.
 */
import { createHash } from 'node:crypto'
import type { Policy } from '../../../../policies/policy.ts'
import type { Scope } from '../../../../policies/scopes.ts'
import { type NewId, randomToken } from '../../../core/base/ids.ts'
import type { AccessKey, Principal } from '../../../core/base/principal.ts'
import { Failure } from '../../../core/failures/failure.ts'
import type { Connection } from '../../../storage/database.ts'
import { requireUnlocked } from '../accounts.ts'
import { authenticateKey, insertKey } from '../store.ts'
import { hashPolicy } from './agent-keys.ts'

export const API_KEY_PREFIX = 'bsk_'

/** Characters of the checksum: 32 bits, base64url. */
const CHECKSUM_LENGTH = 6

export function newApiKey(mode: 'sandbox' | 'production'): string {
  const text = `${API_KEY_PREFIX}${mode === 'sandbox' ? 'sandbox' : 'live'}_${randomToken(32)}`
  return text + computeChecksum(text)
}

function computeChecksum(text: string): string {
  return createHash('sha256').update(text).digest().subarray(0, 4).toString('base64url')
}

/** True if a text has no checksum of a key. Keys of before have none, and are found by their hash. */
function isMistyped(secret: string): boolean {
  return computeChecksum(secret.slice(0, -CHECKSUM_LENGTH)) !== secret.slice(-CHECKSUM_LENGTH)
}

/** The stored form of an API key. */
export function hashApiKey(secret: string): Uint8Array {
  return createHash('sha256').update(secret).digest()
}

/** Creates a developer key. @returns the key and its secret, which is shown once. */
export async function createApiKey(
  { database, newId, mode }: { database: Connection; newId: NewId; mode: 'sandbox' | 'production' },
  grant: {
    accountId: string
    name: string
    scopes: readonly Scope[]
    policy: Policy | null
    expiresAt: Date | null
    at: Date
  },
): Promise<{ key: AccessKey; secret: string }> {
  const secret = newApiKey(mode)
  const key: AccessKey = {
    id: newId('key', grant.at),
    kind: 'developer',
    name: grant.name,
    thumbprint: null,
    publicKey: null,
    scopes: grant.scopes,
    status: 'active',
    policy: grant.policy,
    policyVersion: 1,
    policyHash: hashPolicy(grant.policy),
    createdAt: grant.at,
    expiresAt: grant.expiresAt,
  }
  await insertKey(database, grant.accountId, { ...key, secretHash: hashApiKey(secret) })
  return { key, secret }
}

/** @throws Failure `unknown_key`, `account_locked`. */
export async function authenticateApiKey(
  database: Connection,
  secret: string,
  now: Date,
): Promise<Principal> {
  const found = await authenticateKey(database, { secretHash: hashApiKey(secret) }, now)
  if (found === undefined && isMistyped(secret))
    throw new Failure('unknown_key', 'The API key is mistyped or cut: its checksum does not match.', {
      hint: 'Copy the whole key again, or create another one: it is shown once.',
    })
  if (found === undefined || (found.key.expiresAt !== null && found.key.expiresAt <= now))
    throw new Failure('unknown_key', 'The API key is unknown, revoked or expired.', {
      hint: 'Use an active key of the owner.',
    })
  requireUnlocked(found.account)
  return { kind: 'key', account: found.account, key: found.key }
}
