/** Fingerprints of calls. */
import { createHash } from 'node:crypto'
import { canonicalJson } from '../base/json.ts'
import type { AccountPrincipal } from '../base/principal.ts'

/** Hex SHA-256 of the operation's name and canonical input; identical over REST and MCP. */
export function fingerprintOf(name: string, input: unknown): string {
  return createHash('sha256')
    .update(`${name}\n${canonicalJson(input)}`)
    .digest('hex')
}

/** Fingerprint of a spend. Its reason is no part of it: the same payment may be explained later. */
export function spendFingerprintOf(name: string, input: unknown): string {
  if (typeof input !== 'object' || input === null || !('reason' in input)) return fingerprintOf(name, input)
  const { reason: _reason, ...compared } = input
  return fingerprintOf(name, compared)
}

/** Owner of an idempotency key: the calling key, or the person's account. */
export function idempotencyOwner(principal: AccountPrincipal): string {
  return principal.kind === 'key' ? principal.key.id : principal.account.id
}
