/** Requires the caller's role and scopes for a tool. */

import type { Principal } from '../../core/base/principal.ts'
import { Failure } from '../../core/failures/failure.ts'
import type { Tool } from '../tool.ts'

/** @throws Failure `unauthenticated`, `insufficient_scope`. */
export function requireScope(
  tool: Pick<Tool, 'name' | 'who' | 'scopes' | 'orScopes'>,
  principal: Principal,
): void {
  if (tool.who === 'public') return
  const isForKeys = tool.who === 'account'
  if (principal.kind === 'public')
    throw new Failure('unauthenticated', 'This operation requires a credential.', {
      hint: isForKeys
        ? 'Send a session token or an API key as "Authorization: Bearer …", or sign the request (RFC 9421).'
        : 'Sign in (GET /sign-in lists the sign-in methods) and send the session token as "Authorization: Bearer …".',
    })
  if (principal.kind === 'session') {
    if (tool.who === 'admin' && principal.account.role !== 'admin')
      throw new Failure('insufficient_scope', 'This operation requires an administrator.', {
        scopes: [],
        hint: 'Ask an administrator of this deployment; `bursar admin grant` makes one.',
      })
    return
  }
  if (!isForKeys)
    throw new Failure(
      'insufficient_scope',
      'This operation requires a signed-in person; keys are not allowed.',
      {
        scopes: [],
        hint: 'Ask the owner to do it in the console, signed in; no scope allows it.',
      },
    )
  const missing = missingScopes(tool, principal)
  if (missing.length > 0)
    throw new Failure('insufficient_scope', `The key "${principal.key.name}" lacks ${missing.join(', ')}.`, {
      scopes: tool.scopes,
      hint: 'Tell the owner: only the owner can grant the scopes in "scopes".',
    })
}

/**
 * Rejects changes by a paused key (paused by its owner or by an account recovery). It can still read, and its spends
 * are denied and recorded by the policy. @throws Failure `insufficient_scope`.
 */
export function requireUnpaused(principal: Principal): void {
  if (principal.kind !== 'key' || principal.key.status === 'active') return
  throw new Failure('insufficient_scope', `The key "${principal.key.name}" is ${principal.key.status}.`, {
    scopes: [],
    hint: 'Only its owner can resume it: tell the owner. Until then it can only read.',
  })
}

export function missingScopes(
  { scopes, orScopes }: Pick<Tool, 'scopes' | 'orScopes'>,
  principal: Extract<Principal, { kind: 'key' }>,
): readonly string[] {
  if (orScopes?.every((scope) => principal.key.scopes.includes(scope))) return []
  return scopes.filter((scope) => !principal.key.scopes.includes(scope))
}
