/** Extracts the P-256 point of a passkey, which can own a smart account. */
import type { Hex } from '../../../providers/chain/port.ts'

/** Coordinates of 32 bytes each. */
export interface P256Point {
  readonly x: Hex
  readonly y: Hex
}

/**
 * Returns the point of a COSE key; null for other algorithms, which the chain cannot verify.
 * @see https://www.rfc-editor.org/rfc/rfc9053#section-7.1.1
 */
export async function decodePoint(publicKey: Uint8Array): Promise<P256Point | null> {
  const { cose, decodeCredentialPublicKey } = await import('@simplewebauthn/server/helpers')
  const key = decodeCredentialPublicKey(new Uint8Array(publicKey))
  if (!cose.isCOSEPublicKeyEC2(key) || key.get(cose.COSEKEYS.crv) !== cose.COSECRV.P256) return null
  const [x, y] = [key.get(cose.COSEKEYS.x), key.get(cose.COSEKEYS.y)]
  return x?.length === 32 && y?.length === 32 ? { x: toHex(x), y: toHex(y) } : null
}

function toHex(bytes: Uint8Array): Hex {
  return `0x${Buffer.from(bytes).toString('hex')}`
}
