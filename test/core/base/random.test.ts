import { describe, expect, it } from 'vitest'
import { random } from '../../../src/core/base/random.ts'

describe('bytes', () => {
  it('has the requested length, also when it is longer than the pool', () => {
    for (const length of [0, 1, 16, 4_096, 10_000]) expect(random.bytes(length)).toHaveLength(length)
  })

  it('never returns the same bytes twice, even if the caller changes its own', () => {
    const seen = Array.from({ length: 2_000 }, () => {
      const bytes = random.bytes(16)
      const text = bytes.toString('hex')
      bytes.fill(0)
      return text
    })
    expect(new Set(seen).size).toBe(seen.length)
    expect(seen).not.toContain('0'.repeat(32))
  })
})

describe('below', () => {
  it('returns every whole number below the limit and no other', () => {
    const seen = new Set(Array.from({ length: 1_000 }, () => random.below(10)))
    expect([...seen].sort()).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9])
  })
})

describe('keys', () => {
  it('are private Ed25519 and RSA keys, the latter of the requested length', async () => {
    expect(random.ed25519Key()).toMatchObject({ type: 'private', asymmetricKeyType: 'ed25519' })
    const key = await random.rsaKey(1_024)
    expect(key).toMatchObject({ type: 'private', asymmetricKeyType: 'rsa' })
    expect(key.asymmetricKeyDetails).toMatchObject({ modulusLength: 1_024 })
  })
})
