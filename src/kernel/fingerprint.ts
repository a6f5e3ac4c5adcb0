/** What makes two calls the same call. */
import { createHash } from 'node:crypto'
import { canonicalJson } from '../base/json.ts'
import type { AccountPrincipal } from '../base/principal.ts'

/** SHA-256 over the operation's name and its canonical input, hex: equal for the same call over REST and MCP. */
export function fingerprintOf(name: string, input: unknown): string {
  return createHash('sha256')
    .update(`${name}\n${canonicalJson(input)}`)
    .digest('hex')
}

/** Whose idempotency keys these are: a key's own, or the person's. */
export function idempotencyOwner(principal: AccountPrincipal): string {
  return principal.kind === 'key' ? principal.key.id : principal.account.id
}
