import { describe, expect, it } from 'vitest'
import { derivedSeed, keyedHash, seal, unseal } from '../../../src/core/base/seal.ts'

const key = Buffer.from('a data key of thirty-two letters')
const ada = { purpose: 'mfa', owner: 'acct_ada' }

describe('a seal', () => {
  it('restores the sealed text, and never looks the same twice', () => {
    for (const text of ['', 'JBSWY3DPEHPK3PXP', 'é'.repeat(1000)]) {
      expect(unseal(key, ada, seal(key, ada, text))).toBe(text)
      expect(Buffer.from(seal(key, ada, text))).not.toEqual(Buffer.from(seal(key, ada, text)))
    }
  })

  it('opens only with its own key, purpose and owner, and only unchanged', () => {
    const sealed = seal(key, ada, 'secret')
    expect(() => unseal(Buffer.from('another key of thirty-two letter'), ada, sealed)).toThrow()
    expect(() => unseal(key, { ...ada, purpose: 'kyc' }, sealed)).toThrow()
    expect(() => unseal(key, { ...ada, owner: 'acct_bob' }, sealed)).toThrow()
    for (let at = 0; at < sealed.length; at += 1) {
      const changed = Buffer.from(sealed)
      changed[at] = (changed[at] ?? 0) ^ 1
      expect(() => unseal(key, ada, changed)).toThrow()
    }
    for (const length of [0, 11, 12, 27]) expect(() => unseal(key, ada, sealed.slice(0, length))).toThrow()
  })
})

describe('a keyed hash', () => {
  it('is equal for the same key, purpose and value, and differs for any other', () => {
    const hash = keyedHash(key, 'destination', 'email:ada@example.com')
    expect(hash).toMatch(/^[0-9a-f]{64}$/)
    expect(keyedHash(key, 'destination', 'email:ada@example.com')).toBe(hash)
    expect(keyedHash(key, 'otp', 'email:ada@example.com')).not.toBe(hash)
    expect(keyedHash(key, 'destination', 'email:bob@example.com')).not.toBe(hash)
    expect(keyedHash(Buffer.alloc(32), 'destination', 'email:ada@example.com')).not.toBe(hash)
  })
})

describe('a derived seed', () => {
  it('is the same 32 bytes for the same key and purpose, and differs for any other', () => {
    const seed = derivedSeed(key, 'receipts')
    expect(seed).toHaveLength(32)
    expect(derivedSeed(key, 'receipts')).toEqual(seed)
    expect(derivedSeed(key, 'mfa')).not.toEqual(seed)
    expect(derivedSeed(Buffer.alloc(32), 'receipts')).not.toEqual(seed)
  })
})
