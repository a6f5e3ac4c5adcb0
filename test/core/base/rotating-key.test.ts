import { createECDH, createPublicKey, generateKeyPairSync } from 'node:crypto'
import { calculateJwkThumbprint } from 'jose'
import { describe, expect, it } from 'vitest'
import { isPrivateKeyOn, parsePrivateKey, rotatingKeys } from '../../../src/core/base/rotating-key.ts'
import { derivedSeed } from '../../../src/core/base/seal.ts'
import { readKeyConfig } from '../../../src/core/config/read-config.ts'

const dataKey = Buffer.from('a data key of thirty-two letters')
const toPem = (key: { export(options: object): string | Buffer }) =>
  key.export({ type: 'pkcs8', format: 'pem' }).toString()
const ed25519 = toPem(generateKeyPairSync('ed25519').privateKey)
const p256 = toPem(generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey)
const p384 = toPem(generateKeyPairSync('ec', { namedCurve: 'P-384' }).privateKey)

describe('keys with one use', () => {
  it('follow from the key of the database as ever: clients and browsers know them', async () => {
    const kids = await Promise.all(
      Object.values(rotatingKeys).map(({ derive }) =>
        calculateJwkThumbprint(createPublicKey(derive(dataKey)).export({ format: 'jwk' })),
      ),
    )
    expect(new Set(kids).size).toBe(3)
    const curve = createECDH('prime256v1')
    curve.setPrivateKey(Buffer.from(derivedSeed(dataKey, 'web push 0')))
    const { x = '', y = '' } = rotatingKeys.PUSH_KEY.derive(dataKey).export({ format: 'jwk' })
    expect(Buffer.from(`${x}${y}`, 'base64url').length).toBeGreaterThan(60)
    const point = Buffer.concat([Buffer.of(4), Buffer.from(x, 'base64url'), Buffer.from(y, 'base64url')])
    expect(point.toString('hex')).toBe(curve.getPublicKey('hex'))
  })

  it('are on the curve of their use, which the configuration says without the key', () => {
    expect([isPrivateKeyOn('Ed25519', ed25519), isPrivateKeyOn('P-256', p256)]).toEqual([true, true])
    for (const [curve, pem] of [
      ['Ed25519', p256],
      ['P-256', ed25519],
      ['P-256', p384],
      ['P-256', 'derived'],
    ] as const) {
      expect(isPrivateKeyOn(curve, pem)).toBe(false)
      expect(() => parsePrivateKey(curve, pem)).toThrow(/^is no (Ed25519|P-256) private key in PEM$/)
    }
    const read = (env: Readonly<Record<string, string>>) => () => readKeyConfig(env)
    expect(read({ PUSH_KEY: ed25519 })).toThrow('PUSH_KEY: must be a P-256 private key in PEM')
    expect(read({ ACCESS_TOKEN_KEY: 'derived' })).toThrow('ACCESS_TOKEN_KEY: must be an Ed25519 private key')
    expect(read({ WEB_BOT_AUTH_KEY_PREVIOUS: p256 })).toThrow(
      /WEB_BOT_AUTH_KEY_PREVIOUS: must be .*, or: derived/,
    )
    const { rotatingKeys: configured } = readKeyConfig({
      ACCESS_TOKEN_KEY: ed25519.replaceAll('\n', '\\n'),
      ACCESS_TOKEN_KEY_PREVIOUS: 'derived',
    })
    expect(configured.ACCESS_TOKEN_KEY).toEqual({ current: ed25519, previous: 'derived' })
  })
})
