/** Agent keys: an agent's Ed25519 key, bound to its owner's account with scopes and a spend policy. */
import { createHash } from 'node:crypto'
import type { Policy } from '../../../../policies/policy.ts'
import type { Scope } from '../../../../policies/scopes.ts'
import type { NewId } from '../../../core/base/ids.ts'
import { canonicalJson } from '../../../core/base/json.ts'
import type { AccessKey } from '../../../core/base/principal.ts'
import { Failure } from '../../../core/failures/failure.ts'
import type { Connection } from '../../../storage/database.ts'
import { insertKey } from '../store.ts'
import { computeThumbprint } from './thumbprint.ts'

/** Hex SHA-256 of a policy's canonical JSON, recorded in decisions. */
export function hashPolicy(policy: Policy | null): string | null {
  return policy === null ? null : createHash('sha256').update(canonicalJson(policy)).digest('hex')
}

/**
 * Hex encodings, without the sign bit, of the points of low order: with such a public key, forged signatures verify.
 * @see https://www.rfc-editor.org/rfc/rfc8032#section-5.1.7
 */
const weakPoints: ReadonlySet<string> = new Set([
  '00'.repeat(32),
  `01${'00'.repeat(31)}`,
  '26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05',
  'c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a',
  `ec${'ff'.repeat(30)}7f`,
  `ed${'ff'.repeat(30)}7f`,
  `ee${'ff'.repeat(30)}7f`,
])

/**
 * True for 32 base64url bytes that are a safe Ed25519 public key. Unused trailing bits must be zero; otherwise one
 * key would have several names.
 */
export function isEd25519PublicKey(x: string): boolean {
  const bytes = Buffer.from(x, 'base64url')
  if (bytes.length !== 32 || bytes.toString('base64url') !== x) return false
  bytes[31] = bytes.readUInt8(31) & 0x7f
  return !weakPoints.has(bytes.toString('hex'))
}

/** @throws Failure `conflict` when the key is already registered. */
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
    thumbprint: computeThumbprint(agent.publicKey),
    publicKey: agent.publicKey,
    scopes: agent.scopes,
    status: 'active',
    policy: agent.policy,
    policyVersion: 1,
    policyHash: hashPolicy(agent.policy),
    createdAt: agent.at,
    expiresAt: agent.expiresAt,
  }
  if (await insertKey(database, agent.accountId, { ...key, secretHash: null })) return key
  throw new Failure('conflict', 'This public key is already registered.', {
    hint: 'Create a new key pair: "bursar agent new".',
  })
}
