import { describe, expect, it } from 'vitest'
import { describeKeyReference, parseKeyReference } from '../../../src/core/config/key-reference.ts'
import { readKeyConfig } from '../../../src/core/config/read-config.ts'

const wrapped = 'A'.repeat(60)

describe('a reference to a key', () => {
  it('names a token and a key, each by one or two names', () => {
    expect(parseKeyReference('pkcs11:token=Bursar%20live;object=sponsor')).toEqual({
      ...{ kind: 'pkcs11', token: 'Bursar live', serial: null, object: 'sponsor', id: null, wrapped: null },
    })
    expect(parseKeyReference(`pkcs11:serial=00a1;id=%01%ff;type=private?wrapped=${wrapped}`)).toEqual({
      ...{ kind: 'pkcs11', token: null, serial: '00a1', object: null, id: '01ff', wrapped },
    })
  })

  it('is described without what it wraps', () => {
    const text = `pkcs11:token=bursar;object=wrapping?wrapped=${wrapped}`
    expect(describeKeyReference(parseKeyReference(text))).toBe('key "wrapping" in PKCS#11 token "bursar"')
  })

  it.each([
    ['pkcs11:token=bursar', 'names no key'],
    ['pkcs11:object=sponsor', 'names no token'],
    ['pkcs11:token=bursar;object=sponsor;slot-id=1', 'has an unknown attribute'],
    ['pkcs11:token=bursar;object=one;object=two', 'states object twice'],
    ['pkcs11:token=bursar;object=%E0%A4%A', 'not percent-encoded'],
    ['pkcs11:token=bursar;object=sponsor?pin-value=1234', 'use PKCS11_PIN_FILE'],
    ['pkcs11:token=bursar;object=sponsor?module-path=/x', 'use PKCS11_PIN_FILE and PKCS11_MODULE'],
    ['pkcs11:token=bursar;object=sponsor?wrapped=short', 'not base64url'],
    ['pkcs11:token=bursar;object=sponsor?wrapped=a?b', 'more than one'],
  ])('is refused as %s', (text, why) => {
    expect(() => parseKeyReference(text)).toThrow(why)
    expect(() => readKeyConfig({ DATA_KEY: text })).toThrow(
      /^The configuration is not valid:\n {2}DATA_KEY: /,
    )
  })

  it('takes the place of a key in its variable, and nothing else does', () => {
    const reference = 'pkcs11:token=bursar;object=receipts'
    expect(readKeyConfig({ RECEIPT_KEY: reference })).toMatchObject({ receiptKey: reference })
    for (const text of ['pkcs12:token=bursar', 'x'.repeat(64)])
      expect(() => readKeyConfig({ RECEIPT_KEY: text })).toThrow(
        'RECEIPT_KEY: must be an Ed25519 private key in PEM',
      )
  })
})
