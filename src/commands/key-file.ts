/**
 * An agent's key file: `{keyId, privateKey, publicKey}` as JWKs, readable by its owner alone. Read without a schema's help:
 * a local agent's process starts with it, and loading zod takes longer than all the rest.
 */
import { createPrivateKey, generateKeyPairSync } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import type { SigningKey } from '../identity/keys/sign-request.ts'
import { thumbprintOf } from '../identity/keys/thumbprint.ts'

/** Reads a key file. @throws Error naming the file where it cannot be used. */
export function readKeyFile(path: string): SigningKey {
  try {
    const { keyId, privateKey: jwk } = membersOf(JSON.parse(readFileSync(path, 'utf8')))
    const privateKey = createPrivateKey({ format: 'jwk', key: { ...membersOf(jwk) } })
    if (typeof keyId !== 'string' || privateKey.asymmetricKeyType !== 'ed25519')
      throw new TypeError('not the key of an agent')
    return { keyId, privateKey }
  } catch (cause) {
    const why =
      cause instanceof Error && 'code' in cause && cause.code === 'ENOENT'
        ? 'there is no such file'
        : 'it is not a key file'
    throw new Error(`${path}: ${why}. Make one with "bursar agent new --name NAME --out FILE".`)
  }
}

function membersOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null ? { ...value } : {}
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
