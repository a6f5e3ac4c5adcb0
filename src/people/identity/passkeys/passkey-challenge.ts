/**
 * Passkey challenges by purpose. A sign-in challenge starts with a fixed prefix and is longer than a hash; a payment
 * challenge is a bare SHA-256. So no assertion can be used for the other purpose.
 */
import { randomToken } from '../../../core/base/ids.ts'

const SIGN_IN = Buffer.from('bursar sign-in: ')
const RANDOM_BYTES = 32
const HASH_BYTES = 32

export function newSignInChallenge(): Uint8Array<ArrayBuffer> {
  return new Uint8Array(Buffer.concat([SIGN_IN, Buffer.from(randomToken(RANDOM_BYTES), 'base64url')]))
}

/** True for a base64url challenge from {@link newSignInChallenge}. */
export function isSignInChallenge(challenge: string): boolean {
  const bytes = Buffer.from(challenge, 'base64url')
  return bytes.length === SIGN_IN.length + RANDOM_BYTES && bytes.subarray(0, SIGN_IN.length).equals(SIGN_IN)
}

/** True if a base64url challenge can be a payment hash. */
export function isPaymentChallenge(challenge: string): boolean {
  return Buffer.from(challenge, 'base64url').length === HASH_BYTES
}
