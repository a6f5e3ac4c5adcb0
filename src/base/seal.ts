/**
 * What is stored of secrets and personal data: sealed where it must be read again (AES-256-GCM), a keyed hash where it only
 * has to be recognised (HMAC-SHA-256). Each purpose has a key of its own, derived from the deployment's data key.
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

/** Seals a text. @param purpose such as `mfa`. @param owner whose it is: sealed bytes cannot be moved to another row. */
export function seal(dataKey: Uint8Array, { purpose, owner }: Seal, text: string): Uint8Array {
  const iv = Buffer.from(randomToken(IV_BYTES), 'base64url')
  const cipher = createCipheriv('aes-256-gcm', keyFor(dataKey, purpose), iv).setAAD(Buffer.from(owner))
  return Buffer.concat([iv, cipher.update(text, 'utf8'), cipher.final(), cipher.getAuthTag()])
}

/** The text of a seal. @throws Error where the bytes were changed, are another owner's, or the data key is not theirs. */
export function unseal(dataKey: Uint8Array, { purpose, owner }: Seal, sealed: Uint8Array): string {
  const bytes = Buffer.from(sealed)
  const decipher = createDecipheriv('aes-256-gcm', keyFor(dataKey, purpose), bytes.subarray(0, IV_BYTES), {
    authTagLength: TAG_BYTES,
  })
    .setAAD(Buffer.from(owner))
    .setAuthTag(bytes.subarray(-TAG_BYTES))
  return decipher.update(bytes.subarray(IV_BYTES, -TAG_BYTES), undefined, 'utf8') + decipher.final('utf8')
}

/** What a value is recognised by, hex. Nobody without the data key can try values against it. */
export function keyedHash(dataKey: Uint8Array, purpose: string, value: string): string {
  return createHmac('sha256', keyFor(dataKey, purpose)).update(value).digest('hex')
}

/** Thirty-two bytes that a key of another kind is made of. @param purpose such as `receipts`. */
export function derivedSeed(dataKey: Uint8Array, purpose: string): Uint8Array {
  return keyFor(dataKey, `seed ${purpose}`)
}

/** The DER of an Ed25519 private key up to its 32 bytes. @see https://www.rfc-editor.org/rfc/rfc8410#section-7 */
const PKCS8_HEAD = Buffer.from('302e020100300506032b657004220420', 'hex')

/** An Ed25519 private key of a deployment, which every process has alike and none stores. @param purpose such as `receipts`. */
export function derivedSigningKey(dataKey: Uint8Array, purpose: string): KeyObject {
  const key = Buffer.concat([PKCS8_HEAD, derivedSeed(dataKey, purpose)])
  return createPrivateKey({ key, format: 'der', type: 'pkcs8' })
}

/** What sealed bytes are for and whose they are. */
interface Seal {
  readonly purpose: string
  readonly owner: string
}

/** Derived once a purpose: sealing happens on the way of requests. */
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
