/** Fingerprints of calls. */
import { createHash } from 'node:crypto'
import { canonicalJson } from '../core/base/json.ts'
import type { AccountPrincipal, Principal } from '../core/base/principal.ts'
import type { Chains } from '../providers/chain/chains.ts'

/** Hex SHA-256 of the operation's name and canonical input; identical over REST and MCP. */
export function hashCall(name: string, input: unknown): string {
  return createHash('sha256')
    .update(`${name}\n${canonicalJson(input)}`)
    .digest('hex')
}

/**
 * Fingerprint of a spend: equal for whatever means the same payment. Its reason is no part of it, since the same payment may be
 * explained later; EVM addresses are compared without case, and the default chain is the same named or not.
 */
export function hashSpendCall(
  { chains }: { readonly chains: Pick<Chains, 'all' | 'resolveName'> },
  name: string,
  input: unknown,
): string {
  if (typeof input !== 'object' || input === null) return hashCall(name, input)
  const compared = Object.entries(input).flatMap(([member, value]) => {
    if (member === 'reason') return []
    const isDefault = typeof value === 'string' && chains.resolveName(value) === chains.all[0].name
    if (member === 'chain' && isDefault) return []
    return [[member, withoutCase(value)] as const]
  })
  return hashCall(name, Object.fromEntries(compared))
}

/**
 * A person's payment without its proof: one that the others must agree to is signed again when it is made. Anything else stays as it is.
 */
export function withoutProof(
  { proof }: { readonly proof: string },
  { principal }: { readonly principal: Principal },
  input: unknown,
): unknown {
  const isAgreedTo = principal.kind === 'session' && (principal.account.quorums ?? []).length > 0
  if (!isAgreedTo || proof !== 'signature' || typeof input !== 'object' || input === null) return input
  return Object.fromEntries(Object.entries(input).filter(([member]) => !PROOFS.has(member)))
}

const PROOFS: ReadonlySet<string> = new Set(['signature', 'intentId'])

const EVM_ADDRESS = /^0x[0-9a-f]{40}$/i

function withoutCase(value: unknown): unknown {
  return typeof value === 'string' && EVM_ADDRESS.test(value) ? value.toLowerCase() : value
}

/** Owner of an idempotency key: the calling key, or the person. */
export function idempotencyOwner(principal: AccountPrincipal): string {
  return principal.kind === 'key' ? principal.key.id : principal.person.id
}
