/** Agent keys: an agent's own Ed25519 key, bound to its owner's account with scopes and a spend policy. */
import { createHash, createPublicKey } from 'node:crypto'
import type { Policy } from '../../policies/policy.ts'
import type { Scope } from '../../policies/scopes.ts'
import { Failure } from '../failure.ts'
import type { NewId } from '../ids.ts'
import { canonicalJson } from '../json.ts'
import type { AccessKey } from '../principal.ts'
import type { Connection } from '../storage/database.ts'
import { insertKey } from './store.ts'
import { thumbprintOf } from './thumbprint.ts'

/** SHA-256 of a policy's canonical JSON, hex: what a decision names as the policy it was taken under. */
export function policyHashOf(policy: Policy | null): string | null {
  return policy === null ? null : createHash('sha256').update(canonicalJson(policy)).digest('hex')
}

/** Whether 32 bytes in base64url are a point that Ed25519 can verify with. */
export function isEd25519PublicKey(x: string): boolean {
  if (!/^[A-Za-z0-9_-]{43}$/.test(x)) return false
  try {
    createPublicKey({ format: 'jwk', key: { kty: 'OKP', crv: 'Ed25519', x } })
    return true
  } catch {
    return false
  }
}

/** Registers an agent's key. @throws Failure `conflict` where the key is registered already. */
export async function registerAgentKey(
  { database, newId }: { database: Connection; newId: NewId },
  agent: {
    accountId: string
    name: string
    publicKey: string
    scopes: readonly Scope[]
    policy: Policy | null
    expiresAt: Date | null
    at: Date
  },
): Promise<AccessKey> {
  const key: AccessKey = {
    id: newId('key', agent.at),
    kind: 'agent',
    name: agent.name,
    thumbprint: thumbprintOf(agent.publicKey),
    publicKey: agent.publicKey,
    scopes: agent.scopes,
    status: 'active',
    policy: agent.policy,
    policyVersion: 1,
    policyHash: policyHashOf(agent.policy),
    createdAt: agent.at,
    expiresAt: agent.expiresAt,
  }
  if (await insertKey(database, agent.accountId, { ...key, secretHash: null })) return key
  throw new Failure('conflict', 'This public key is registered already.', {
    hint: 'Make a new key pair: "bursar agent new".',
  })
}
