import { keccak256, recoverAddress, stringToHex, toHex } from 'viem'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { describe, expect, it } from 'vitest'
import { completeSignature } from '../../../src/providers/keys/chain-key.ts'

const ORDER = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n
const account = privateKeyToAccount(generatePrivateKey())
const digest = keccak256(stringToHex('digest'))

describe('a signature of a store', () => {
  it('gets the lower s and its parity, whichever of both the store returns', async () => {
    const expected = await account.sign({ hash: digest })
    const [r, s] = [expected.slice(2, 66), BigInt(`0x${expected.slice(66, 130)}`)]
    for (const one of [s, ORDER - s]) {
      const signed = Buffer.from(r + toHex(one, { size: 32 }).slice(2), 'hex')
      expect(await completeSignature(account.address, digest, signed)).toBe(expected)
    }
  })

  it('is refused when another key has made it, or when it is none', async () => {
    const other = await privateKeyToAccount(generatePrivateKey()).sign({ hash: digest })
    expect(await recoverAddress({ hash: digest, signature: other })).not.toBe(account.address)
    const signed = Buffer.from(other.slice(2, 130), 'hex')
    await expect(completeSignature(account.address, digest, signed)).rejects.toThrow('with another key')
    await expect(completeSignature(account.address, digest, Buffer.alloc(64))).rejects.toThrow(
      'with another key',
    )
    await expect(completeSignature(account.address, digest, Buffer.alloc(72))).rejects.toThrow('64 bytes')
  })
})
