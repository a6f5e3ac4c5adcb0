/** Keys in the key management of two clouds, on local servers that are as strict as the vendors' documents. */
import { createPublicKey, generateKeyPairSync, verify } from 'node:crypto'
import { keccak256, recoverAddress, stringToHex } from 'viem'
import { afterEach, beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import { installTimers, systemTimers } from '../../../src/core/base/timers.ts'
import { readKeyConfig } from '../../../src/core/config/read-config.ts'
import { createConfiguredKeys } from '../../../src/providers/keys/configured.ts'
import { computeCrc32c } from '../../../src/providers/keys/crc32c.ts'
import { parseDerSignature } from '../../../src/providers/keys/public-key.ts'
import { type AwsServer, REGION, startAwsServer } from './aws-kms-server.ts'
import { type GoogleServer, startGoogleServer } from './google-kms-server.ts'
import { encodeDer } from './kms-server.ts'

const HALF_ORDER = 0x7fffffffffffffffffffffffffffffff5d576e7357a4501ddfe92f46681b20a0n
const secret = 'a secret of more than thirty-two characters'
const digest = keccak256(stringToHex('a digest'))
const open = (env: Readonly<Record<string, string>>) => createConfiguredKeys(readKeyConfig(env))
const unavailable = (why: string) => ({
  code: 'provider_unavailable',
  message: 'CHAIN_SPONSOR_KEY cannot sign at the moment; nothing was signed.',
  cause: expect.objectContaining({ message: expect.stringContaining(why) }),
})

/** Lets a second take 50 ms. @returns the timers from before. */
function hurryTimers() {
  return installTimers({
    ...systemTimers,
    monotonic: () => systemTimers.monotonic() * 20,
    sleep: (ms, options) => systemTimers.sleep(ms / 20, options),
    after: (ms, work, options) => systemTimers.after(ms / 20, work, options),
  })
}

describe.each([
  ['AWS KMS', startAwsServer],
  ['AWS KMS with a session', () => startAwsServer({ hasSession: true })],
  ['Google Cloud KMS', startGoogleServer],
])('keys in %s', (_, start) => {
  let server: AwsServer | GoogleServer
  beforeEach(async () => {
    server = await start()
  })
  afterEach(() => server.close())
  const openSponsor = () => open(server.env).openChainKey('CHAIN_SPONSOR_KEY', server.at.sponsor)

  it('sign digests for chains: low, and recoverable to the address of the key', async () => {
    const key = await openSponsor()
    expect(key.address).toBe(server.address('sponsor'))
    const digests = Array.from({ length: 40 }, (_, index) => keccak256(stringToHex(`digest ${index}`)))
    const signatures = await Promise.all(digests.map((one) => key.sign(one)))
    for (const [index, signature] of signatures.entries()) {
      expect(signature).toMatch(/^0x[0-9a-f]{128}1[bc]$/)
      expect(BigInt(`0x${signature.slice(66, 130)}`)).toBeLessThanOrEqual(HALF_ORDER)
      expect(await recoverAddress({ hash: digests[index] ?? '0x', signature })).toBe(key.address)
    }
  })

  it('are compared with the address of the reference when they are opened', async () => {
    const opening = (address: string) =>
      open(server.env).openChainKey('CHAIN_OWNER_KEY', `${server.at.owner}?address=${address}`)
    expect((await opening(server.address('owner').toLowerCase())).address).toBe(server.address('owner'))
    await expect(opening(server.address('sponsor'))).rejects.toThrow(
      /^CHAIN_OWNER_KEY: the key .* has the address 0x\w{40}, not 0x\w{40}\.$/,
    )
  })

  it('wrap secrets, and open them only unchanged and with the key that wrapped them', async () => {
    const keys = open(server.env)
    const wrapped = await keys.wrap(server.at.wrapping, secret)
    expect(wrapped.startsWith(`${server.at.wrapping}?wrapped=`)).toBe(true)
    expect(wrapped).not.toContain(Buffer.from(secret).toString('base64url'))
    expect(await keys.openSecret('DATA_KEY', wrapped)).toBe(secret)
    const moved = wrapped.replace(server.at.wrapping, server.at.wrapping2)
    const changed = wrapped.replace(
      /(.)(.{30})$/,
      (_, one: string, rest: string) => (one === 'A' ? 'B' : 'A') + rest,
    )
    for (const wrong of [moved, changed])
      await expect(keys.openSecret('DATA_KEY', wrong)).rejects.toThrow(/^DATA_KEY: the key .* cannot be used/)
    await expect(keys.openSecret('DATA_KEY', server.at.wrapping)).rejects.toThrow('has no wrapped secret')
    await expect(keys.openChainKey('CHAIN_SPONSOR_KEY', wrapped)).rejects.toThrow('cannot be wrapped')
  })

  it('keep a key of receipts wrapped, which signs here', async () => {
    const keys = open(server.env)
    const pair = generateKeyPairSync('ed25519')
    const pem = pair.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()
    const key = await keys.openDocumentKey('RECEIPT_KEY', await keys.wrap(server.at.wrapping, pem))
    expect(key.place).toMatch(/^wrapped by key /)
    const data = Buffer.alloc(10_000, 'a receipt')
    expect(verify(null, data, pair.publicKey, await key.sign(data))).toBe(true)
    await expect(
      keys.openDocumentKey('RECEIPT_KEY', await keys.wrap(server.at.wrapping, secret)),
    ).rejects.toThrow('RECEIPT_KEY: what is wrapped is no Ed25519 private key in PEM.')
  })

  it('print no wrapped secret that does not open again', async () => {
    const keys = open(server.env)
    for (const kind of ['corrupt', 'other-name'] as const) {
      server.disturb(kind, 1)
      await expect(keys.wrap(server.at.wrapping, secret)).rejects.toThrow(/^--with: /)
    }
    server.disturb('corrupt', 0)
    expect(await keys.wrap(server.at.wrapping, secret)).toContain('wrapped=')
  })

  it('are asked again where the service is busy, fails or hangs up, and only there', async () => {
    const key = await openSponsor()
    for (const kind of ['throttle', 'fail', 'hang-up'] as const) {
      const before = server.count()
      server.disturb(kind, 2)
      expect(await recoverAddress({ hash: digest, signature: await key.sign(digest) })).toBe(key.address)
      expect(server.count() - before).toBe(3)
    }
    const before = server.count()
    server.deny(true)
    await expect(key.sign(digest)).rejects.toMatchObject(unavailable('allow '))
    expect(server.count() - before).toBe(1)
  })

  it('are not used where the service answers for another key, signs with it, or answers nothing that is a signature', async () => {
    const key = await openSponsor()
    server.disturb('other-key', 1)
    await expect(key.sign(digest)).rejects.toMatchObject(unavailable('signed with another key than that of'))
    server.disturb('other-name', 1)
    await expect(key.sign(digest)).rejects.toMatchObject(unavailable('it answered for another key'))
    server.disturb('corrupt', 1)
    await expect(key.sign(digest)).rejects.toMatchObject(unavailable('cannot be used'))
    server.disturb('other-name', 1)
    await expect(openSponsor()).rejects.toThrow('it answered for another key')
    expect(await key.sign(digest)).toHaveLength(132)
  })

  it('cannot be used while nothing answers, which ends in time', async () => {
    const key = await openSponsor()
    const before = hurryTimers()
    onTestFinished(() => void installTimers(before))
    server.disturb('silence')
    const signing = Array.from({ length: 12 }, () => key.sign(digest))
    for (const outcome of await Promise.allSettled(signing))
      expect(outcome).toMatchObject({ status: 'rejected', reason: { code: 'provider_unavailable' } })
    server.disturb('silence', 0)
    // Hurried, a busy machine's answer is late too.
    installTimers(before)
    expect(await key.sign(digest)).toHaveLength(132)
    hurryTimers()
    await server.close()
    await expect(key.sign(digest)).rejects.toMatchObject(unavailable('it cannot be reached (ECONNREFUSED)'))
    await expect(openSponsor()).rejects.toThrow('it cannot be reached (ECONNREFUSED)')
  })

  it('say no secret, and what to do', async () => {
    const credentials = Object.entries(server.env).filter(([name]) => !name.endsWith('ENDPOINT'))
    const said = (work: Promise<unknown>) =>
      work.then(
        () => 'done',
        (error: Error) => {
          expect(error.message).not.toContain('is not said')
          for (const [, value] of credentials) expect(error.message).not.toContain(value)
          return error.message
        },
      )
    const openIn = (env: Readonly<Record<string, string>>, reference: string = server.at.sponsor) =>
      said(open(env).openChainKey('CHAIN_SPONSOR_KEY', reference))
    expect(await openIn({})).toMatch(/(AWS_KMS_ACCESS_KEY_ID|GCP_KMS_CREDENTIALS_FILE).* is missing/)
    expect(await openIn(server.env, server.at.wrapping)).toMatch(
      /^CHAIN_SPONSOR_KEY: the key .*cannot be used/,
    )
    expect(await openIn(server.env, server.at.sponsor.replace(/[0-9a-f]{4}$|sponsor/, 'abcd'))).toContain(
      'there is no such key',
    )
    server.deny(true)
    expect(await openIn(server.env)).toContain('allow ')
  })
})

describe('keys in AWS KMS', () => {
  let server: AwsServer
  beforeEach(async () => {
    server = await startAwsServer()
  })
  afterEach(() => server.close())
  const opening = (reference: string, env: Readonly<Record<string, string>> = server.env) =>
    open(env).openChainKey('CHAIN_SPONSOR_KEY', reference)

  it('are refused with wrong credentials, in another region, and of another spec or use', async () => {
    const wrong = { ...server.env, AWS_KMS_SECRET_ACCESS_KEY: 'x'.repeat(40) }
    await expect(opening(server.at.sponsor, wrong)).rejects.toThrow(
      /check AWS_KMS_ACCESS_KEY_ID.*InvalidSignatureException/,
    )
    await expect(opening(server.at.sponsor.replace(REGION, 'us-east-1'))).rejects.toThrow(
      'InvalidSignatureException',
    )
    await expect(opening(server.at.p256)).rejects.toThrow('it is no key of the spec ECC_SECG_P256K1')
    await expect(opening(server.at.wrapping)).rejects.toThrow('UnsupportedOperationException')
    server.setState('sponsor', 'PendingDeletion')
    await expect(opening(server.at.sponsor)).rejects.toThrow('awaits its deletion')
    await expect(open(server.env).openDocumentKey('RECEIPT_KEY', server.at.sponsor)).rejects.toThrow(
      'signs at most 4096 bytes by Ed25519',
    )
  })
})

describe('keys in Google Cloud KMS', () => {
  let server: GoogleServer
  beforeEach(async () => {
    server = await startGoogleServer()
  })
  afterEach(() => server.close())

  it('sign documents by Ed25519, and no signature of another key is used', async () => {
    const key = await open(server.env).openDocumentKey('RECEIPT_KEY', server.at.receipts)
    const data = Buffer.from('a receipt')
    const x = Buffer.from(key.publicKey).toString('base64url')
    const publicKey = createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x }, format: 'jwk' })
    expect(verify(null, data, publicKey, await key.sign(data))).toBe(true)
    server.disturb('other-key', 1)
    await expect(key.sign(data)).rejects.toMatchObject({
      code: 'provider_unavailable',
      cause: expect.objectContaining({ message: expect.stringContaining('it signed other data') }),
    })
  })

  it('are refused outside of hardware, without a version, with wrong sums and credentials', async () => {
    const opening = (reference: string, env: Readonly<Record<string, string>> = server.env) =>
      open(env).openChainKey('CHAIN_SPONSOR_KEY', reference)
    await expect(opening(server.at.software)).rejects.toThrow('its protection level must be HSM')
    await expect(opening(server.at.receipts)).rejects.toThrow('EC_SIGN_SECP256K1_SHA256')
    await expect(opening(server.at.sponsor.replace(/\/cryptoKeyVersions.*/, ''))).rejects.toThrow(
      'add /cryptoKeyVersions/1',
    )
    await expect(open(server.env).wrap(`${server.at.wrapping}/cryptoKeyVersions/1`, secret)).rejects.toThrow(
      'without a version',
    )
    server.disturb('wrong-sum', 1)
    await expect(opening(server.at.sponsor)).rejects.toThrow('CRC32C')
    const key = await opening(server.at.sponsor)
    server.disturb('wrong-sum', 1)
    await expect(key.sign(digest)).rejects.toMatchObject(unavailable('CRC32C'))
    server.setState('sponsor', 'DESTROYED')
    await expect(key.sign(digest)).rejects.toMatchObject(unavailable('disabled or destroyed'))
    const file = JSON.parse(server.env.GCP_KMS_CREDENTIALS ?? '')
    const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
    const other = { ...file, private_key: privateKey.export({ type: 'pkcs8', format: 'pem' }) }
    const wrong = { ...server.env, GCP_KMS_CREDENTIALS: JSON.stringify(other) }
    await expect(opening(server.at.owner, wrong)).rejects.toThrow('check GCP_KMS_CREDENTIALS')
  })
})

describe('encodings', () => {
  it('reads ECDSA signatures in their only encoding', () => {
    const [r, s] = [0x80n << 248n, 1n]
    const parsed = Buffer.from(parseDerSignature(encodeDer(r, s))).toString('hex')
    expect(parsed).toBe(`80${'00'.repeat(31)}${'00'.repeat(31)}01`)
    for (const wrong of [
      '',
      '300602010102010100',
      '3006020100020101',
      '3006020181020101',
      '300702020001020101',
      '3005020101020101',
      '3006020101030101',
      `3026${'0221'}${'01'.repeat(33)}020101`,
    ])
      expect(() => parseDerSignature(Buffer.from(wrong, 'hex')), wrong).toThrow('no signature')
  })

  it('computes CRC32C as the vectors of RFC 3720 say', () => {
    expect(computeCrc32c(Buffer.alloc(32))).toBe(0x8a9136aa)
    expect(computeCrc32c(Buffer.alloc(32, 0xff))).toBe(0x62a8ab43)
    expect(computeCrc32c(Buffer.from(Array.from({ length: 32 }, (_, index) => index)))).toBe(0x46dd794e)
    expect(computeCrc32c(Buffer.from('123456789'))).toBe(0xe3069283)
  })
})
