import { describe, expect, it } from 'vitest'
import { contentDigest, fitsDigest } from '../../../../src/people/identity/keys/content-digest.ts'

/** RFC 9530, section 2 and appendix B.1: the body is `{"hello": "world"}` and a line feed. */
const published = {
  body: Buffer.from('{"hello": "world"}\n'),
  sha256: 'sha-256=:RK/0qy18MlBSVnWgjwz6lZEWjP/lF5HF9bvEF8FabDg=:',
}
/** RFC 9421, section 2 and appendix B.2: the body is `{"hello": "world"}` without one. */
const withoutLineFeed = {
  body: Buffer.from('{"hello": "world"}'),
  sha256: 'sha-256=:X48E9qOokqqrvdts8nOJRJN3OWDUoyWxBf7kbu9DBPE=:',
  sha512:
    'sha-512=:WZDPaVn/7XgHaAy8pmojAkGWoRx2UFChF41A2svX+TaPm+AbwAgBWnrIiYllu7BNNyealdVLvRwEmTHWXvJwew==:',
}

describe('Content-Digest', () => {
  it('equals the RFCs’ examples', () => {
    expect(contentDigest(published.body)).toBe(published.sha256)
    expect(contentDigest(withoutLineFeed.body)).toBe(withoutLineFeed.sha256)
  })

  it('verifies the example’s bytes, and no others', () => {
    expect(fitsDigest(published.sha256, published.body)).toBe(true)
    expect(fitsDigest(published.sha256, withoutLineFeed.body)).toBe(false)
    for (const header of [withoutLineFeed.sha256, withoutLineFeed.sha512]) {
      expect(fitsDigest(header, withoutLineFeed.body)).toBe(true)
      expect(fitsDigest(header, published.body)).toBe(false)
    }
  })

  it('verifies if every supported digest does', () => {
    const { body, sha256, sha512 } = withoutLineFeed
    expect(fitsDigest(`${sha256}, ${sha512}`, body)).toBe(true)
    expect(fitsDigest(`${sha256}, unixsum=:AAA=:`, body)).toBe(true)
    expect(fitsDigest(`${sha512}, ${published.sha256}`, body)).toBe(false)
    expect(fitsDigest(`${published.sha256}, ${sha512}`, body)).toBe(false)
  })

  it('uses the last of two values with one name', () => {
    const { body, sha256 } = withoutLineFeed
    expect(fitsDigest(`${sha256}, ${published.sha256}`, body)).toBe(false)
  })

  it('the digest of an empty body is that of no bytes', () => {
    expect(contentDigest(new Uint8Array())).toBe('sha-256=:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=:')
  })

  it.each([
    '',
    'sha-256',
    'sha-256=1',
    'sha-256="X48E9qOokqqrvdts8nOJRJN3OWDUoyWxBf7kbu9DBPE="',
    'sha-256=(:X48E9qOokqqrvdts8nOJRJN3OWDUoyWxBf7kbu9DBPE=:)',
    'sha-256=::',
    'sha-256=:X48E:',
    'md5=:Sd/dVLAcvNLSq16eXua5uQ==:',
    'SHA-256=:X48E9qOokqqrvdts8nOJRJN3OWDUoyWxBf7kbu9DBPE=:',
    'sha-256=X48E9qOokqqrvdts8nOJRJN3OWDUoyWxBf7kbu9DBPE=',
    '\u0000',
  ])('does not verify as %j', (header) => {
    expect(fitsDigest(header, withoutLineFeed.body)).toBe(false)
  })

  it('covers only its own part of a larger buffer', () => {
    const large = Buffer.from('xx{"hello": "world"}xx')
    expect(contentDigest(large.subarray(2, -2))).toBe(withoutLineFeed.sha256)
    expect(fitsDigest(withoutLineFeed.sha256, large.subarray(2, -2))).toBe(true)
  })
})
