/** A key on secp256k1 whose store returns plain ECDSA: made canonical, with the parity that chains need. */
import { concatHex, getAddress, type Hex, hexToBytes, keccak256, recoverAddress, toHex } from 'viem'
import type { ChainKey, StoredKey } from './port.ts'

/** Order of secp256k1. @see https://www.secg.org/sec2-v2.pdf */
const ORDER = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n

/** @throws Error for a point in another form than the uncompressed one. */
function computeAddress(point: Uint8Array): Hex {
  if (point.length !== 65 || point[0] !== 4) throw new Error('its public key is not a point on secp256k1')
  return getAddress(`0x${keccak256(point.subarray(1)).slice(-40)}`)
}

/** @param place of the key, for people. */
export function createChainKey(stored: StoredKey, place: string): ChainKey {
  const address = computeAddress(stored.publicKey)
  return {
    address,
    place,
    async sign(digest) {
      const signed = await stored.sign(hexToBytes(digest))
      return completeSignature(address, digest, signed)
    },
  }
}

/**
 * Chains accept only the lower s, and need the parity of the point, which ECDSA leaves out: the one that recovers this address.
 * @see https://eips.ethereum.org/EIPS/eip-2 @throws Error for a signature of another key.
 */
export async function completeSignature(address: Hex, digest: Hex, signed: Uint8Array): Promise<Hex> {
  if (signed.length !== 64) throw new Error('the store returned a signature that has not 64 bytes')
  const [r, s] = [toHex(signed.subarray(0, 32)), BigInt(toHex(signed.subarray(32)))]
  const low = toHex(s > ORDER / 2n ? ORDER - s : s, { size: 32 })
  for (const yParity of [0, 1]) {
    const signature = concatHex([r, low, yParity === 0 ? '0x1b' : '0x1c'])
    if ((await findSigner(digest, signature)) === address) return signature
  }
  throw new Error(`the store signed with another key than that of ${address}`)
}

/** @returns null for numbers that are no signature. */
async function findSigner(hash: Hex, signature: Hex): Promise<Hex | null> {
  try {
    return await recoverAddress({ hash, signature })
  } catch {
    return null
  }
}
