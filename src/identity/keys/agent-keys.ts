/** Agent keys: an agent's own Ed25519 key, bound to its owner's account with scopes and a spend policy. */
import { createHash } from 'node:crypto'
import type { Policy } from '../../../policies/policy.ts'
import type { Scope } from '../../../policies/scopes.ts'
import type { NewId } from '../../base/ids.ts'
import { canonicalJson } from '../../base/json.ts'
import type { AccessKey } from '../../base/principal.ts'
import { Failure } from '../../failures/failure.ts'
import type { Connection } from '../../storage/database.ts'
import { insertKey } from '../store.ts'
import { thumbprintOf } from './thumbprint.ts'

/** SHA-256 of a policy's canonical JSON, hex: what a decision names as the policy it was taken under. */
export function policyHashOf(policy: Policy | null): string | null {
  return policy === null ? null : createHash('sha256').update(canonicalJson(policy)).digest('hex')
}

/**
 * The encodings, hex and without the sign bit, of the points whose order divides eight: with such a public key a signature
 * that anybody can make verifies. @see https://www.rfc-editor.org/rfc/rfc8032#section-5.1.7
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
 * Whether a text is 32 bytes in base64url that Ed25519 can verify with. Bits beyond the 32 bytes must be zero: they would
 * give one key several names.
 */
export function isEd25519PublicKey(x: string): boolean {
  const bytes = Buffer.from(x, 'base64url')
  if (bytes.length !== 32 || bytes.toString('base64url') !== x) return false
  bytes[31] = bytes.readUInt8(31) & 0x7f
  return !weakPoints.has(bytes.toString('hex'))
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
