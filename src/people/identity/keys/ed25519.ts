/** Ed25519 with public keys as agents have them. @see https://www.rfc-editor.org/rfc/rfc8032 */
import { createPublicKey, type KeyObject, verify } from 'node:crypto'
import { promisify } from 'node:util'

/** Reads a public key. @param x its 32 bytes as base64url. */
export function importPublicKey(x: string): KeyObject {
  return createPublicKey({ format: 'jwk', key: { kty: 'OKP', crv: 'Ed25519', x } })
}

/** Verifies a signature. The callback form runs on the thread pool, so verification uses all cores. */
export const verifyEd25519 = promisify(
  (
    key: KeyObject,
    data: Uint8Array,
    signature: Uint8Array,
    done: (error: Error | null, isValid: boolean) => void,
  ) => verify(null, data, key, signature, done),
)
