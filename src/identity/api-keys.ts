/** Developer API keys: a secret shown once, kept as its SHA-256. The secret has 256 random bits, so a plain hash is enough. */
import { createHash } from 'node:crypto'
import { Failure } from '../failure.ts'
import { randomToken } from '../ids.ts'
import type { Principal } from '../principal.ts'
import type { Connection } from '../storage/database.ts'
import { requireUnlocked } from './accounts.ts'
import { findKey } from './store.ts'

/** How every API key starts. */
export const API_KEY_PREFIX = 'bsk_'

/** A new secret, and what is stored of it. */
export function newApiKey(mode: 'sandbox' | 'production'): string {
  return `${API_KEY_PREFIX}${mode === 'sandbox' ? 'sandbox' : 'live'}_${randomToken(32)}`
}

/** What is stored of an API key. */
export function hashApiKey(secret: string): Uint8Array {
  return createHash('sha256').update(secret).digest()
}

/** Who an API key acts for. @throws Failure `unknown_key`, `account_locked`. */
export async function authenticateApiKey(
  database: Connection,
  secret: string,
  now: Date,
): Promise<Principal> {
  const found = await findKey(database, { secretHash: hashApiKey(secret) })
  if (found === undefined || (found.key.expiresAt !== null && found.key.expiresAt <= now))
    throw new Failure('unknown_key', 'The API key is not known, was revoked or has expired.', {
      hint: 'Use a key that the owner has created and not revoked.',
    })
  requireUnlocked(found.account)
  return { kind: 'key', account: found.account, key: found.key }
}
