/**
 * Proof of possession of a private key. The challenge is derived from the account and a five-minute period, not
 * stored. Reusing a proof is harmless: it proves the same fact for the same account.
 */
import { createHmac, createPublicKey, verify } from 'node:crypto'

const PERIOD_MS = 5 * 60 * 1000

/** @property expiresAt end of acceptance, in 5 to 10 minutes. */
export interface KeyChallenge {
  /** 32 bytes as base64url; the ASCII text itself is signed. */
  readonly challenge: string
  readonly expiresAt: Date
}

/** @param secret secret of the deployment. */
export function keyChallenge(secret: Uint8Array, accountId: string, at: Date): KeyChallenge {
  const period = Math.floor(at.getTime() / PERIOD_MS)
  return {
    challenge: deriveChallenge(secret, accountId, period),
    expiresAt: new Date((period + 2) * PERIOD_MS),
  }
}

/** True if the proof is the key's signature over a current challenge of the account. */
export function isKeyProof(
  secret: Uint8Array,
  { accountId, publicKey, proof, at }: { accountId: string; publicKey: string; proof: string; at: Date },
): boolean {
  const key = createPublicKey({ format: 'jwk', key: { kty: 'OKP', crv: 'Ed25519', x: publicKey } })
  const period = Math.floor(at.getTime() / PERIOD_MS)
  return [period, period - 1].some((candidate) =>
    verify(
      null,
      Buffer.from(deriveChallenge(secret, accountId, candidate)),
      key,
      Buffer.from(proof, 'base64url'),
    ),
  )
}

function deriveChallenge(secret: Uint8Array, accountId: string, period: number): string {
  return createHmac('sha256', secret).update(`agent-key\n${accountId}\n${period}`).digest('base64url')
}
