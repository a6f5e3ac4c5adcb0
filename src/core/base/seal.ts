/**
 * Protects stored secrets and personal data: AES-256-GCM for data that must be read again, HMAC-SHA-256 for data that
 * is only compared. Each purpose has its own key, derived from the deployment's data key.
 * @see https://www.rfc-editor.org/rfc/rfc5869
 */
import {
  createCipheriv,
  createDecipheriv,
  createHmac,
  createPrivateKey,
  hkdfSync,
  type KeyObject,
} from 'node:crypto'
import { randomToken } from './ids.ts'

const IV_BYTES = 12
const TAG_BYTES = 16

/**
 * Key of a deployment. Its bytes are the root, which keyed hashes and derived keys come from: they stay for the life of a
 * database. @property sealing keys of sealed data, after the root was replaced for it: the first seals, each opens.
 */
export interface DataKey extends Uint8Array {
  readonly sealing?: readonly Uint8Array[]
}

/** @param purpose such as `mfa`. @param owner id bound to the ciphertext, so that it cannot be moved to another row. */
export function seal(dataKey: DataKey, { purpose, owner }: Seal, secret: string | Uint8Array): Uint8Array {
  const [key = dataKey] = dataKey.sealing ?? []
  const iv = Buffer.from(randomToken(IV_BYTES), 'base64url')
  const cipher = createCipheriv('aes-256-gcm', keyFor(key, purpose), iv).setAAD(Buffer.from(owner))
  const bytes = typeof secret === 'string' ? Buffer.from(secret) : secret
  return Buffer.concat([iv, cipher.update(bytes), cipher.final(), cipher.getAuthTag()])
}

/** @throws Error when the bytes were changed, or belong to another owner or data key. */
export function unseal(dataKey: DataKey, of: Seal, sealed: Uint8Array): string {
  return unsealBytes(dataKey, of, sealed).toString('utf8')
}

/** @throws Error as {@link unseal}. */
export function unsealBytes(dataKey: DataKey, of: Seal, sealed: Uint8Array): Buffer {
  const keys = dataKey.sealing ?? [dataKey]
  for (const key of keys.slice(0, -1))
    try {
      return unsealWith(key, of, sealed)
    } catch {
      // Sealed under another one of the keys.
    }
  return unsealWith(keys.at(-1) ?? dataKey, of, sealed)
}

function unsealWith(dataKey: Uint8Array, { purpose, owner }: Seal, sealed: Uint8Array): Buffer {
  const bytes = Buffer.from(sealed)
  const decipher = createDecipheriv('aes-256-gcm', keyFor(dataKey, purpose), bytes.subarray(0, IV_BYTES), {
    authTagLength: TAG_BYTES,
  })
    .setAAD(Buffer.from(owner))
    .setAuthTag(bytes.subarray(-TAG_BYTES))
  return Buffer.concat([decipher.update(bytes.subarray(IV_BYTES, -TAG_BYTES)), decipher.final()])
}

/** Keyed hash of a value, hex. Without the data key, values cannot be tested against it. */
export function keyedHash(dataKey: Uint8Array, purpose: string, value: string): string {
  return createHmac('sha256', keyFor(dataKey, purpose)).update(value).digest('hex')
}

/** 32 bytes of key material for another kind of key. @param purpose such as `receipts`. */
export function derivedSeed(dataKey: Uint8Array, purpose: string): Uint8Array {
  return keyFor(dataKey, `seed ${purpose}`)
}

/** DER prefix of an Ed25519 private key. @see https://www.rfc-editor.org/rfc/rfc8410#section-7 */
const PKCS8_HEAD = Buffer.from('302e020100300506032b657004220420', 'hex')

/**
 * The deployment's Ed25519 key for a purpose: the same in every process, stored in none. @param purpose such as
 * `receipts`.
 */
export function derivedSigningKey(dataKey: Uint8Array, purpose: string): KeyObject {
  const key = Buffer.concat([PKCS8_HEAD, derivedSeed(dataKey, purpose)])
  return createPrivateKey({ key, format: 'der', type: 'pkcs8' })
}

export interface Seal {
  readonly purpose: string
  readonly owner: string
}

/** Cached per purpose, because sealing happens during requests. */
const derived = new WeakMap<Uint8Array, Map<string, Buffer>>()

function keyFor(dataKey: Uint8Array, purpose: string): Buffer {
  const keys = derived.get(dataKey) ?? new Map<string, Buffer>()
  derived.set(dataKey, keys)
  const known = keys.get(purpose)
  if (known !== undefined) return known
  const key = Buffer.from(hkdfSync('sha256', dataKey, new Uint8Array(), `bursar ${purpose}`, 32))
  keys.set(purpose, key)
  return key
}
