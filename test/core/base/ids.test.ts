import { describe, expect, it } from 'vitest'
import { newId, randomToken } from '../../../src/core/base/ids.ts'

const noon = new Date('2026-11-20T12:00:00.123Z')
const alphabet = '0123456789abcdefghjkmnpqrstvwxyz'

/**
 * The UUID inside a TypeID, decoded as the specification describes. @see
 * https://github.com/jetify-com/typeid/tree/main/spec
 */
function toUuid(id: string): string {
  const suffix = id.slice(id.lastIndexOf('_') + 1)
  const value = [...suffix].reduce((sum, character) => sum * 32n + BigInt(alphabet.indexOf(character)), 0n)
  return value.toString(16).padStart(32, '0')
}

describe('newId', () => {
  it('has a prefix and 26 characters of lower-case Crockford base32, of which the first fits 128 bits', () => {
    for (let count = 0; count < 200; count += 1)
      expect(newId('acct', noon)).toMatch(/^acct_[0-7][0-9a-hjkmnp-tv-z]{25}$/)
  })

  it('contains a UUIDv7 of its creation time', () => {
    const uuid = toUuid(newId('tx', noon))
    expect(uuid).toHaveLength(32)
    expect(Number.parseInt(uuid.slice(0, 12), 16)).toBe(noon.getTime())
    expect(uuid[12]).toBe('7')
    expect('89ab').toContain(uuid[16])
  })

  it('matches the example of the specification', () => {
    expect(toUuid('prefix_01h455vb4pex5vsknk084sn02q')).toBe('01890a5dac96774bbcceb302099a8057')
  })

  it('sorts by time, to the millisecond', () => {
    const moments = [0, 1, 999, 1000, 86_400_000, noon.getTime(), noon.getTime() + 1, 4_102_444_800_000]
    const ids = moments.map((moment) => newId('evt', new Date(moment)))
    expect([...ids].sort()).toEqual(ids)
  })

  it('never repeats an id within a millisecond', () => {
    const ids = Array.from({ length: 20_000 }, () => newId('dec', noon))
    expect(new Set(ids).size).toBe(ids.length)
  })
})

describe('randomToken', () => {
  it('has the requested entropy, in base64url', () => {
    expect(Buffer.from(randomToken(32), 'base64url')).toHaveLength(32)
    expect(randomToken(32)).toMatch(/^[A-Za-z0-9_-]{43}$/)
    expect(new Set(Array.from({ length: 1000 }, () => randomToken(16))).size).toBe(1000)
  })
})
