/** Whether this caller may use this tool at all. */

import type { Principal } from '../../base/principal.ts'
import { Failure } from '../../failures/failure.ts'
import type { Tool } from '../tool.ts'

/** @throws Failure `unauthenticated`, `insufficient_scope`. */
export function requireScope(tool: Pick<Tool, 'name' | 'who' | 'scopes'>, principal: Principal): void {
  if (tool.who === 'public') return
  const isForKeys = tool.who === 'account'
  if (principal.kind === 'public')
    throw new Failure('unauthenticated', 'This operation needs a credential.', {
      hint: isForKeys
        ? 'Send a session token or an API key as "Authorization: Bearer …", or sign the request (RFC 9421).'
        : 'Sign in (GET /sign-in shows every way in) and send the session token as "Authorization: Bearer …".',
    })
  if (principal.kind === 'session') {
    if (tool.who === 'admin' && principal.account.role !== 'admin')
      throw new Failure('insufficient_scope', 'Only an administrator may do this.', { scopes: [] })
    return
  }
  if (!isForKeys)
    throw new Failure('insufficient_scope', 'Only a signed-in person may do this; a key never can.', {
      scopes: [],
    })
  const missing = missingScopes(tool, principal)
  if (missing.length > 0)
    throw new Failure('insufficient_scope', `The key "${principal.key.name}" lacks ${missing.join(', ')}.`, {
      scopes: tool.scopes,
      hint: 'The owner must create a key that has every scope named in "scopes".',
    })
}

/**
 * A key that was paused, by its owner or because the account was recovered, changes nothing; it still reads, and what it would
 * spend is denied, and recorded, by the policy. @throws Failure `insufficient_scope`.
 */
export function requireUnpaused(principal: Principal): void {
  if (principal.kind !== 'key' || principal.key.status === 'active') return
  throw new Failure('insufficient_scope', `The key "${principal.key.name}" is ${principal.key.status}.`, {
    scopes: [],
    hint: 'It can read. Its owner can resume it.',
  })
}

/** The scopes that a key lacks for a tool. */
export function missingScopes(
  tool: Pick<Tool, 'scopes'>,
  principal: Extract<Principal, { kind: 'key' }>,
): readonly string[] {
  return tool.scopes.filter((scope) => !principal.key.scopes.includes(scope))
}
