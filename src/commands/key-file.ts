/** An agent's key file: `{keyId, privateKey, publicKey}` as JWKs, readable by its owner alone. */
import { createPrivateKey, generateKeyPairSync } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { z } from 'zod'
import type { SigningKey } from '../identity/sign-request.ts'
import { thumbprintOf } from '../identity/thumbprint.ts'

const jwk = z.looseObject({ kty: z.literal('OKP'), crv: z.literal('Ed25519'), x: z.string() })
const keyFile = z.looseObject({
  keyId: z.string(),
  privateKey: jwk.extend({ d: z.string() }),
  publicKey: jwk,
})

/** Reads a key file. @throws Error naming the file where it cannot be used. */
export function readKeyFile(path: string): SigningKey {
  try {
    const { keyId, privateKey } = keyFile.parse(JSON.parse(readFileSync(path, 'utf8')))
    return { keyId, privateKey: createPrivateKey({ format: 'jwk', key: { ...privateKey } }) }
  } catch (cause) {
    const why =
      cause instanceof Error && 'code' in cause && cause.code === 'ENOENT'
        ? 'there is no such file'
        : 'it is not a key file'
    throw new Error(`${path}: ${why}. Make one with "bursar agent new --name NAME --out FILE".`)
  }
}

/** The public part of a new key. */
export interface NewKey {
  readonly keyId: string
  readonly publicKey: { readonly kty: 'OKP'; readonly crv: 'Ed25519'; readonly x: string }
}

/** Makes a key pair and writes it, mode 600. @throws Error where the file exists: a key is never overwritten. */
export function writeNewKey(path: string, name: string): NewKey {
  const { privateKey } = generateKeyPairSync('ed25519')
  const { x = '', d = '' } = privateKey.export({ format: 'jwk' })
  const publicKey = { kty: 'OKP', crv: 'Ed25519', x } as const
  const keyId = thumbprintOf(x)
  const content = `${JSON.stringify({ name, keyId, privateKey: { ...publicKey, d }, publicKey }, null, 2)}\n`
  try {
    writeFileSync(path, content, { mode: 0o600, flag: 'wx' })
  } catch (cause) {
    if (cause instanceof Error && 'code' in cause && cause.code === 'EEXIST')
      throw new Error(`${path} exists already; a key is never overwritten.`)
    throw cause
  }
  return { keyId, publicKey }
}
