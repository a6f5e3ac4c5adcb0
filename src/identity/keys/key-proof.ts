/**
 * Proof that whoever registers a public key holds its private key. The challenge is derived, not stored: from the account and
 * the five minutes that it was asked in. A proof that is used twice proves the same thing to the same account.
 */
import { createHmac, createPublicKey, verify } from 'node:crypto'

const PERIOD_MS = 5 * 60 * 1000

/** What to sign. @property expiresAt when a proof over it is no longer taken: in 5 to 10 minutes. */
export interface KeyChallenge {
  /** 32 bytes as base64url; its ASCII text is what is signed. */
  readonly challenge: string
  readonly expiresAt: Date
}

/** The challenge of an account at a moment. @param secret of the deployment. */
export function keyChallenge(secret: Uint8Array, accountId: string, at: Date): KeyChallenge {
  const period = Math.floor(at.getTime() / PERIOD_MS)
  return { challenge: challengeOf(secret, accountId, period), expiresAt: new Date((period + 2) * PERIOD_MS) }
}

/** Whether a proof is the key's signature over a challenge that the account was given in the last minutes. */
export function provesKey(
  secret: Uint8Array,
  { accountId, publicKey, proof, at }: { accountId: string; publicKey: string; proof: string; at: Date },
): boolean {
  const key = createPublicKey({ format: 'jwk', key: { kty: 'OKP', crv: 'Ed25519', x: publicKey } })
  const period = Math.floor(at.getTime() / PERIOD_MS)
  return [period, period - 1].some((asked) =>
    verify(null, Buffer.from(challengeOf(secret, accountId, asked)), key, Buffer.from(proof, 'base64url')),
  )
}

function challengeOf(secret: Uint8Array, accountId: string, period: number): string {
  return createHmac('sha256', secret).update(`agent-key\n${accountId}\n${period}`).digest('base64url')
}
