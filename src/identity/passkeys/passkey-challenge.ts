/**
 * What a passkey signs, by purpose. A challenge that signs somebody in begins with words that say so and is longer than a
 * hash; one that moves money is a bare SHA-256. So no assertion of either kind is ever one of the other, whoever chose it.
 */
import { randomToken } from '../../base/ids.ts'

const SIGN_IN = Buffer.from('bursar sign-in: ')
const RANDOM_BYTES = 32
const HASH_BYTES = 32

/** A new challenge to sign in with. */
export function newSignInChallenge(): Uint8Array<ArrayBuffer> {
  return new Uint8Array(Buffer.concat([SIGN_IN, Buffer.from(randomToken(RANDOM_BYTES), 'base64url')]))
}

/** Whether a challenge, base64url, is one of {@link newSignInChallenge}. */
export function isSignInChallenge(challenge: string): boolean {
  const bytes = Buffer.from(challenge, 'base64url')
  return bytes.length === SIGN_IN.length + RANDOM_BYTES && bytes.subarray(0, SIGN_IN.length).equals(SIGN_IN)
}

/** Whether a challenge, base64url, can be the hash of a payment. */
export function isPaymentChallenge(challenge: string): boolean {
  return Buffer.from(challenge, 'base64url').length === HASH_BYTES
}
