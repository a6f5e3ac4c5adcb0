/** Public keys and signatures in the encodings of key management services. */
import { createPublicKey, type KeyObject } from 'node:crypto'
import type { KeyAlgorithm } from './port.ts'

/**
 * Reads a SubjectPublicKeyInfo. @param spki PEM, or DER. @returns the uncompressed point of 65 bytes, or 32 bytes of Ed25519.
 * @throws Error for a key of another algorithm.
 */
export function readPublicKey(spki: string | Buffer, algorithm: KeyAlgorithm): Uint8Array {
  const { crv, x = '', y } = parseKey(spki).export({ format: 'jwk' })
  if (crv !== algorithm) throw new Error(`it is no key on ${algorithm}`)
  const first = Buffer.from(x, 'base64url')
  return y === undefined ? first : Buffer.concat([Buffer.of(4), first, Buffer.from(y, 'base64url')])
}

function parseKey(spki: string | Buffer): KeyObject {
  try {
    return typeof spki === 'string'
      ? createPublicKey(spki)
      : createPublicKey({ key: spki, format: 'der', type: 'spki' })
  } catch (cause) {
    throw new Error('its public key has an unknown form', { cause })
  }
}

/**
 * Reads an ECDSA signature: a sequence of two positive integers, in their only encoding. @returns r and s, 32 bytes each.
 * @see https://www.rfc-editor.org/rfc/rfc3279#section-2.2.3
 */
export function parseDerSignature(der: Uint8Array): Uint8Array {
  const bytes = Buffer.from(der)
  const isSequence = bytes[0] === 0x30 && bytes[1] === bytes.length - 2
  const r = isSequence ? readInteger(bytes, 2) : null
  const s = r === null ? null : readInteger(bytes, r.end)
  if (r === null || s === null || s.end !== bytes.length)
    throw new Error('it answered with no signature of this kind')
  return Buffer.concat([r.value, s.value])
}

/** @returns null for anything but a positive integer of at most 256 bits. */
function readInteger(bytes: Buffer, at: number): { readonly value: Buffer; readonly end: number } | null {
  const length = bytes[at + 1] ?? 0
  const content = bytes.subarray(at + 2, at + 2 + length)
  const [first = 0, second = 0] = content
  const isPositive = first < 0x80
  const isShortest = first !== 0 || second >= 0x80
  if (bytes[at] !== 2 || length === 0 || content.length !== length || !isPositive || !isShortest) return null
  const digits = first === 0 ? content.subarray(1) : content
  if (digits.length === 0 || digits.length > 32) return null
  return { value: Buffer.concat([Buffer.alloc(32 - digits.length), digits]), end: at + 2 + length }
}
