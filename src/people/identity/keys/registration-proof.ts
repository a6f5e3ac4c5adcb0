/**
 * Proof of possession of a private key by an agent that has no owner yet: a signature over the gateway's origin and
 * the time. Imports no packages, because the command line signs with it.
 */
import { createPublicKey, verify } from 'node:crypto'

/** Tolerance between the clocks of agent and gateway. */
const SKEW_MS = 5 * 60 * 1000

/** The text to sign. @param origin origin of the gateway, so that no other gateway can pass the proof on. */
export function registrationText(origin: string, signedAt: string): string {
  return `bursar agent registration\n${origin}\n${signedAt}`
}

/** True if the key signed one of the origins within the last minutes. @param signedAt ISO 8601. */
export function isRegistrationProof(
  origins: readonly string[],
  { publicKey, signedAt, proof, at }: { publicKey: string; signedAt: string; proof: string; at: Date },
): boolean {
  if (Math.abs(at.getTime() - new Date(signedAt).getTime()) > SKEW_MS) return false
  const key = createPublicKey({ format: 'jwk', key: { kty: 'OKP', crv: 'Ed25519', x: publicKey } })
  return origins.some((origin) =>
    verify(null, Buffer.from(registrationText(origin, signedAt)), key, Buffer.from(proof, 'base64url')),
  )
}
