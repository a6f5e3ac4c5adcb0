import { generateKeyPairSync, sign } from 'node:crypto'
import { expect, it } from 'vitest'
import { isKeyProof, keyChallenge } from '../../../../src/people/identity/keys/key-proof.ts'

const secret = Buffer.alloc(32, 7)
const at = new Date('2026-11-20T12:00:01.000Z')
const minutesLater = (minutes: number) => new Date(at.getTime() + minutes * 60_000)
const { privateKey } = generateKeyPairSync('ed25519')
const publicKey = privateKey.export({ format: 'jwk' }).x ?? ''
const signText = (text: string) => sign(null, Buffer.from(text), privateKey).toString('base64url')

it('accepts a proof over the account’s own challenge until it expires', () => {
  const { challenge, expiresAt } = keyChallenge(secret, 'acct_1', at)
  const proof = signText(challenge)
  for (const minutes of [0, 4, 9])
    expect(isKeyProof(secret, { accountId: 'acct_1', publicKey, proof, at: minutesLater(minutes) })).toBe(
      true,
    )
  expect(isKeyProof(secret, { accountId: 'acct_1', publicKey, proof, at: expiresAt })).toBe(false)
})

it('rejects another account’s challenge, another key and any other signed text', () => {
  const { challenge } = keyChallenge(secret, 'acct_1', at)
  const other = generateKeyPairSync('ed25519').privateKey.export({ format: 'jwk' }).x ?? ''
  expect(isKeyProof(secret, { accountId: 'acct_2', publicKey, proof: signText(challenge), at })).toBe(false)
  expect(isKeyProof(secret, { accountId: 'acct_1', publicKey: other, proof: signText(challenge), at })).toBe(
    false,
  )
  expect(isKeyProof(secret, { accountId: 'acct_1', publicKey, proof: signText('challenge'), at })).toBe(false)
})
