/** Requires the role of a person, or the scopes of a key, for a tool. */

import { includesRole, type MemberRole, type Principal } from '../../core/base/principal.ts'
import { Failure } from '../../core/failures/failure.ts'
import type { Tool } from '../tool.ts'

/** @throws Failure `unauthenticated`, `insufficient_scope`, `insufficient_role`. */
export function requireScope(
  tool: Pick<Tool, 'name' | 'who' | 'scopes' | 'orScopes' | 'role'>,
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
    // Administrators act for the deployment, whatever they are in an account.
    if (tool.who !== 'admin') requireRole(principal, tool.role)
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

/** @throws Failure `insufficient_role`. */
export function requireRole(
  { person }: Pick<Extract<Principal, { kind: 'session' }>, 'person'>,
  least: MemberRole,
): void {
  if (includesRole(person.role, least)) return
  const article = { accountant: 'an', viewer: 'a', approver: 'an', owner: 'an' } as const
  throw new Failure(
    'insufficient_role',
    `This requires ${article[least]} ${least} of the account, and you are ${article[person.role]} ${person.role}.`,
    { hint: 'Ask an owner of the account to do it, or to change your role (GET /api/people lists them).' },
  )
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
