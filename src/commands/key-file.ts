/**
 * An agent's key file: `{keyId, privateKey, publicKey}` as JWKs, readable by its owner only. Parsed without zod,
 * whose loading would dominate the startup of `bursar mcp`.
 */
import { createPrivateKey, type KeyObject } from 'node:crypto'
import { accessSync, constants, existsSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { random } from '../core/base/random.ts'
import type { SigningKey } from '../people/identity/keys/sign-request.ts'
import { computeThumbprint } from '../people/identity/keys/thumbprint.ts'

/** @throws Error naming the file when it is not usable. */
export function readKeyFile(path: string): SigningKey {
  try {
    const { keyId, privateKey: jwk, delegation } = toMembers(JSON.parse(readFileSync(path, 'utf8')))
    const privateKey = createPrivateKey({ format: 'jwk', key: { ...toMembers(jwk) } })
    if (typeof keyId !== 'string' || privateKey.asymmetricKeyType !== 'ed25519')
      throw new TypeError('not an agent key')
    return { keyId, privateKey, ...(typeof delegation === 'string' ? { delegation } : {}) }
  } catch (cause) {
    const why =
      cause instanceof Error && 'code' in cause && cause.code === 'ENOENT'
        ? 'the file does not exist'
        : 'not a key file'
    throw new Error(`${path}: ${why}. Create one with "bursar agent new --name NAME --out FILE".`)
  }
}

/**
 * Reads the origin of the gateway that a key is for: the file names it, or the delegation that made the key does.
 * @returns null for a key that was registered elsewhere. @throws Error naming the file when it is not usable.
 */
export function readKeyGateway(path: string): string | null {
  readKeyFile(path)
  const { gateway, delegation } = toMembers(JSON.parse(readFileSync(path, 'utf8')))
  if (typeof gateway === 'string') return gateway
  const [, claims = ''] = typeof delegation === 'string' ? delegation.split('.') : []
  const { aud } = toMembers(claims === '' ? {} : JSON.parse(Buffer.from(claims, 'base64url').toString()))
  return typeof aud === 'string' ? aud : null
}

function toMembers(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null ? { ...value } : {}
}

export interface NewKey {
  readonly keyId: string
  readonly publicKey: { readonly kty: 'OKP'; readonly crv: 'Ed25519'; readonly x: string }
  readonly privateKey: KeyObject
}

export function newKey(): NewKey {
  const privateKey = random.ed25519Key()
  const { x = '' } = privateKey.export({ format: 'jwk' })
  return { keyId: computeThumbprint(x), publicKey: { kty: 'OKP', crv: 'Ed25519', x }, privateKey }
}

/**
 * Writes a key with mode 600. @param gateway origin of the gateway that registered it.
 * @throws Error when the file exists, because a key is never overwritten.
 */
export function writeKeyFile(
  path: string,
  name: string,
  { keyId, publicKey, privateKey }: NewKey,
  gateway?: string,
): void {
  const { d = '' } = privateKey.export({ format: 'jwk' })
  const registered = gateway === undefined ? {} : { gateway }
  writeNewKey(path, { name, keyId, privateKey: { ...publicKey, d }, publicKey, ...registered })
}

/** Writes the members of a key with mode 600. @throws Error when the file exists. */
export function writeNewKey(path: string, members: object): void {
  const content = `${JSON.stringify(members, null, 2)}\n`
  try {
    writeFileSync(path, content, { mode: 0o600, flag: 'wx' })
  } catch (cause) {
    if (cause instanceof Error && 'code' in cause && cause.code === 'EEXIST') throw neverOverwritten(path)
    throw cause
  }
}

/** Finds out early that a key file could not be written. @throws Error naming the path. */
export function requireNewFile(path: string): void {
  if (existsSync(path)) throw neverOverwritten(path)
  accessSync(dirname(path), constants.W_OK)
}

function neverOverwritten(path: string): Error {
  return new Error(`${path} already exists; keys are never overwritten.`)
}
