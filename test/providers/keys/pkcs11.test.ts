/** Keys in a real token of SoftHSM, which reads its configuration once in a process. */

import { createPublicKey, verify } from 'node:crypto'
import { renameSync, rmSync } from 'node:fs'
import { hashMessage, keccak256, recoverAddress, stringToHex } from 'viem'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { readKeyConfig } from '../../../src/core/config/read-config.ts'
import { createConfiguredKeys } from '../../../src/providers/keys/configured.ts'
import { hasSoftHsm, makeToken, type TestToken } from './token.ts'

const HALF_ORDER = 0x7fffffffffffffffffffffffffffffff5d576e7357a4501ddfe92f46681b20a0n
const at = (object: string) => `pkcs11:token=bursar;object=${object}`

describe.skipIf(!hasSoftHsm())('keys in a token', () => {
  let token: TestToken
  const open = (pin?: string) =>
    createConfiguredKeys({ ...readKeyConfig({}), pkcs11: { module: token.module, pin: pin ?? token.pin } })
  beforeAll(() => {
    token = makeToken()
    process.env.SOFTHSM2_CONF = token.configuration
    token.makePair('secp256k1', 'sponsor')
    token.makePair('edwards25519', 'receipts')
    token.makeWrapping('wrapping')
  })
  afterAll(() => {
    delete process.env.SOFTHSM2_CONF
    if (token !== undefined) rmSync(token.directory, { recursive: true, force: true })
  })

  it('sign digests for chains: low, and recoverable to the address of the key', async () => {
    const keys = open()
    const key = await keys.openChainKey('CHAIN_SPONSOR_KEY', at('sponsor'))
    expect(key.place).toBe('key "sponsor" in PKCS#11 token "bursar"')
    const digests = Array.from({ length: 40 }, (_, index) => keccak256(stringToHex(`digest ${index}`)))
    // More at a time than there are sessions.
    const signatures = await Promise.all(digests.map((digest) => key.sign(digest)))
    for (const [index, signature] of signatures.entries()) {
      expect(signature).toMatch(/^0x[0-9a-f]{128}1[bc]$/)
      expect(BigInt(`0x${signature.slice(66, 130)}`)).toBeLessThanOrEqual(HALF_ORDER)
      expect(await recoverAddress({ hash: digests[index] ?? '0x', signature })).toBe(key.address)
    }
    await keys.close()
  })

  it('sign documents by Ed25519, always alike', async () => {
    const keys = open()
    const key = await keys.openDocumentKey('RECEIPT_KEY', at('receipts'))
    const data = Buffer.from('a receipt')
    const [first, second] = await Promise.all([key.sign(data), key.sign(data)])
    expect(Buffer.from(first).equals(second)).toBe(true)
    const x = Buffer.from(key.publicKey).toString('base64url')
    const publicKey = createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x }, format: 'jwk' })
    expect(verify(null, data, publicKey, first)).toBe(true)
    await keys.close()
  })

  it('wrap secrets, and open them only unchanged', async () => {
    const keys = open()
    const secret = 'a secret of more than thirty-two characters'
    const wrapped = await keys.wrap(at('wrapping'), secret)
    expect(wrapped).toMatch(/^pkcs11:token=bursar;object=wrapping\?wrapped=[\w-]+$/)
    expect(await keys.openSecret('DATA_KEY', wrapped)).toBe(secret)
    expect(await keys.wrap(at('wrapping'), secret)).not.toBe(wrapped)
    const changed = wrapped.replace(
      /(.)(.{30})$/,
      (_, one: string, rest: string) => (one === 'A' ? 'B' : 'A') + rest,
    )
    await expect(keys.openSecret('DATA_KEY', changed)).rejects.toThrow(
      /^DATA_KEY: the key "wrapping" in PKCS#11 token "bursar" cannot be used: it does not open the wrapped secret/,
    )
    await expect(keys.openSecret('DATA_KEY', at('wrapping'))).rejects.toThrow('has no wrapped secret')
    await keys.close()
  })

  it('are refused by name where they are missing, several, or of another kind', async () => {
    const keys = open()
    token.makePair('secp256k1', 'twice')
    token.makePair('secp256k1', 'twice')
    const opening = (reference: string) => keys.openChainKey('CHAIN_OWNER_KEY', reference)
    await expect(opening(at('nobody'))).rejects.toThrow(
      'CHAIN_OWNER_KEY: the key "nobody" in PKCS#11 token "bursar" cannot be used: the token has no private key of this name.',
    )
    await expect(opening(at('twice'))).rejects.toThrow('several private keys of this name')
    await expect(opening(at('receipts'))).rejects.toThrow('it is no key on secp256k1')
    await expect(opening('pkcs11:token=other;object=sponsor')).rejects.toThrow('the token is not there')
    await expect(opening('pkcs11:token=bursar;object=sponsor?pin-value=1')).rejects.toThrow(
      'CHAIN_OWNER_KEY states pin-value; use PKCS11_PIN_FILE and PKCS11_MODULE instead.',
    )
    await keys.close()
  })

  it('refuse a wrong PIN once, and do not try it again', async () => {
    const keys = open('000000')
    for (let attempt = 0; attempt < 5; attempt += 1)
      await expect(keys.openChainKey('CHAIN_SPONSOR_KEY', at('sponsor'))).rejects.toThrow(
        'it refuses the PIN (CKR_PIN_INCORRECT); it is not asked again before a restart',
      )
    await keys.close()
  })

  it('stop signing when the token is removed, go on when it is back, and never sign with another key', async () => {
    const keys = open()
    const key = await keys.openChainKey('CHAIN_SPONSOR_KEY', at('sponsor'))
    const digest = hashMessage('hello')
    const before = await key.sign(digest)
    renameSync(token.directory, `${token.directory}-removed`)
    await expect(key.sign(digest)).rejects.toMatchObject({
      code: 'provider_unavailable',
      message: 'CHAIN_SPONSOR_KEY cannot sign at the moment; nothing was signed.',
    })
    renameSync(`${token.directory}-removed`, token.directory)
    expect(await recoverAddress({ hash: digest, signature: await key.sign(digest) })).toBe(key.address)
    expect(before).toHaveLength(132)
    token.tool('--delete-object', '--type', 'privkey', '--label', 'sponsor')
    token.tool('--delete-object', '--type', 'pubkey', '--label', 'sponsor')
    token.makePair('secp256k1', 'sponsor')
    await expect(key.sign(digest)).rejects.toMatchObject({
      code: 'provider_unavailable',
      cause: expect.objectContaining({
        message: expect.stringContaining('another key of this name than at the start'),
      }),
    })
    await keys.close()
  })
})
