/**
 * An agent's key file: `{keyId, privateKey, publicKey}` as JWKs, readable by its owner only. Parsed without zod,
 * whose loading would dominate the startup of `bursar mcp`.
 */
import { createPrivateKey, generateKeyPairSync } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import type { SigningKey } from '../identity/keys/sign-request.ts'
import { thumbprintOf } from '../identity/keys/thumbprint.ts'

/** @throws Error naming the file when it is not usable. */
export function readKeyFile(path: string): SigningKey {
  try {
    const { keyId, privateKey: jwk } = membersOf(JSON.parse(readFileSync(path, 'utf8')))
    const privateKey = createPrivateKey({ format: 'jwk', key: { ...membersOf(jwk) } })
    if (typeof keyId !== 'string' || privateKey.asymmetricKeyType !== 'ed25519')
      throw new TypeError('not an agent key')
    return { keyId, privateKey }
  } catch (cause) {
    const why =
      cause instanceof Error && 'code' in cause && cause.code === 'ENOENT'
        ? 'the file does not exist'
        : 'not a key file'
    throw new Error(`${path}: ${why}. Create one with "bursar agent new --name NAME --out FILE".`)
  }
}

function membersOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null ? { ...value } : {}
}

export interface NewKey {
  readonly keyId: string
  readonly publicKey: { readonly kty: 'OKP'; readonly crv: 'Ed25519'; readonly x: string }
}

/**
 * Creates a key pair and writes it with mode 600. @throws Error when the file exists, because a key is never
 * overwritten.
 */
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
      throw new Error(`${path} already exists; keys are never overwritten.`)
    throw cause
  }
  return { keyId, publicKey }
}
