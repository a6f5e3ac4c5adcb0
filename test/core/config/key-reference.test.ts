import { describe, expect, it } from 'vitest'
import { describeKeyReference, parseKeyReference } from '../../../src/core/config/key-reference.ts'
import { readKeyConfig } from '../../../src/core/config/read-config.ts'

const wrapped = 'A'.repeat(60)
const arn = 'arn:aws:kms:eu-central-1:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab'
const resource = 'projects/p-1/locations/europe-west3/keyRings/bursar/cryptoKeys/sponsor'

describe('a reference to a key', () => {
  it('names a token and a key, each by one or two names', () => {
    expect(parseKeyReference('pkcs11:token=Bursar%20live;object=sponsor')).toEqual({
      ...{ kind: 'pkcs11', token: 'Bursar live', serial: null, object: 'sponsor', id: null },
      ...{ wrapped: null, address: null },
    })
    expect(parseKeyReference(`pkcs11:serial=00a1;id=%01%ff;type=private?wrapped=${wrapped}`)).toEqual({
      ...{ kind: 'pkcs11', token: null, serial: '00a1', object: null, id: '01ff', wrapped },
      address: null,
    })
  })

  it('names a key of a cloud as its vendor does, and the address that it must have', () => {
    const address = `0x${'aB'.repeat(20)}`
    expect(parseKeyReference(`aws-kms://${arn}?address=${address}`)).toEqual({
      ...{ kind: 'aws-kms', arn, partition: 'aws', region: 'eu-central-1', wrapped: null, address },
    })
    expect(parseKeyReference(`gcp-kms://${resource}/cryptoKeyVersions/12`)).toEqual({
      ...{ kind: 'gcp-kms', key: resource, version: '12', wrapped: null, address: null },
    })
    expect(describeKeyReference(parseKeyReference(`gcp-kms://${resource}?wrapped=${wrapped}`))).toBe(
      `key ${resource} in Google Cloud KMS`,
    )
    expect(describeKeyReference(parseKeyReference(`aws-kms://${arn}`))).toBe(`key ${arn} in AWS KMS`)
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
    ['pkcs11:token=bursar;object=sponsor?address=0x12', 'an address that is not'],
    [
      'aws-kms://1234abcd-12ab-34cd-56ef-1234567890ab',
      'aws-kms://arn:aws:kms:REGION:ACCOUNT:key/ID is its form',
    ],
    [`aws-kms://${arn.replace(/key.*/, 'alias/sponsor')}`, 'names an alias'],
    [`aws-kms://${arn}?region=x`, 'has an unknown attribute'],
    [`aws-kms://${arn.replace('eu-central-1', 'evil.example/')}`, 'names no key'],
    [`gcp-kms://${resource}/../x`, 'names no key'],
    [`gcp-kms://${resource}/cryptoKeyVersions/0`, 'names no key'],
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

  it('needs settings of its cloud that are well formed, and says none of them', () => {
    const read = (env: Readonly<Record<string, string>>) => () => readKeyConfig(env)
    for (const endpoint of ['http://kms.example', 'https://kms.example/path', 'kms.example'])
      for (const name of ['AWS_KMS_ENDPOINT', 'GCP_KMS_ENDPOINT'])
        expect(read({ [name]: endpoint })).toThrow(`${name}: must be`)
    expect(readKeyConfig({ AWS_KMS_ENDPOINT: 'http://127.0.0.1:1' }).awsKms.endpoint).toBe(
      'http://127.0.0.1:1',
    )
    const file = { type: 'service_account', client_email: 'a@b.example', private_key_id: '1' }
    for (const text of ['a-secret', JSON.stringify({ ...file, private_key: 'a-secret' })]) {
      const reading = read({ GCP_KMS_CREDENTIALS: text })
      expect(reading).toThrow('GCP_KMS_CREDENTIALS: must be the JSON key of a service account')
      expect(reading).not.toThrow('a-secret')
    }
  })
})
