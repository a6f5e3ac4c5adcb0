/** Request members for new agent and developer keys: public key, name, scopes, spend policy and expiry. */
import { z } from 'zod'
import { spendPolicy } from '../../../../policies/policy.ts'
import { needsPolicy, type Scope, scopes } from '../../../../policies/scopes.ts'
import { Failure } from '../../../core/failures/failure.ts'
import { isEd25519PublicKey } from './agent-keys.ts'

const scopeNames: readonly Scope[] = Object.keys(scopes).filter((name): name is Scope => name in scopes)

/** An agent’s public key as a JWK. */
export const publicJwk = z
  .strictObject({
    kty: z.literal('OKP'),
    crv: z.literal('Ed25519'),
    x: z.string().max(64),
    kid: z.string().max(256).optional(),
    alg: z.string().max(32).optional(),
    use: z.string().max(32).optional(),
  })
  .describe('JWK, RFC 8037.')

/** An agent’s public key, as its 32 bytes in base64url. */
export const agentPublicKey = z
  .union([publicJwk, z.string().max(64).describe('The 32 bytes as base64url.')])
  .transform((key) => (typeof key === 'string' ? key : key.x))
  .refine(isEd25519PublicKey, {
    error: 'must be an Ed25519 public key: a JWK (OKP) or 32 bytes as base64url',
  })

export const keySignature = z
  .string()
  .regex(/^[A-Za-z0-9_-]{86}$/, 'must be an Ed25519 signature, 64 bytes as base64url')

export const grantMembers = {
  name: z.string().trim().min(1).max(80).describe('Name given by the owner.'),
  scopes: z
    .array(z.enum(scopeNames))
    .max(32)
    .transform((held) => [...new Set(held)])
    .describe('Scopes of the key.'),
  policy: spendPolicy.optional().describe('Spend policy. Required with a scope that can spend.'),
  expiresAt: z.iso.datetime().optional().describe('Expiry of the key, ISO 8601 UTC; never by default.'),
}

const NEEDS_POLICY = 'is required: these scopes can spend'

/** Adds an issue when a key could spend without a policy. */
export function refineGrant(
  grant: { scopes: readonly Scope[]; policy?: unknown },
  context: z.core.$RefinementCtx,
): void {
  if (lacksPolicy(grant)) context.addIssue({ code: 'custom', path: ['policy'], message: NEEDS_POLICY })
}

/** @throws Failure `invalid_request` when a key could spend without a policy. */
export function requirePolicy(grant: { scopes: readonly Scope[]; policy: unknown }): void {
  if (!lacksPolicy(grant)) return
  throw new Failure('invalid_request', `policy: ${NEEDS_POLICY}`, {
    issues: [{ path: 'policy', message: NEEDS_POLICY }],
  })
}

function lacksPolicy({ scopes: held, policy }: { scopes: readonly Scope[]; policy?: unknown }): boolean {
  return (policy === undefined || policy === null) && needsPolicy(held)
}

/** Parses a key's expiry; null for none. @throws Failure `invalid_request` when it is in the past. */
export function keyExpiry({ expiresAt }: { expiresAt?: string | undefined }, now: Date): Date | null {
  if (expiresAt === undefined) return null
  const end = new Date(expiresAt)
  if (end > now) return end
  const message = 'is in the past'
  throw new Failure('invalid_request', `expiresAt: ${message}`, { issues: [{ path: 'expiresAt', message }] })
}
