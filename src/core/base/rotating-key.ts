/**
 * Private keys with one use each, in the memory of the process: a configured one, or the one that follows from the key of the database.
 * During a rotation a second one is published and accepted beside it.
 */
import { createECDH, createPrivateKey, type KeyObject } from 'node:crypto'
import { derivedSeed, derivedSigningKey } from './seal.ts'

export type KeyCurve = 'Ed25519' | 'P-256'

/** @property current signs. @property previous of the rotation: the one before, or the next one. */
export interface RotatingKey {
  readonly current: KeyObject
  readonly previous: KeyObject | null
}

/** The value of a variable that stands for the key that follows from the key of the database. */
export const DERIVED = 'derived'

/** Each by its variable. @property use for people. @property derive the same key in every process, stored in none. */
export const rotatingKeys = {
  ACCESS_TOKEN_KEY: {
    use: 'access tokens of OAuth clients',
    curve: 'Ed25519',
    derive: (dataKey) => derivedSigningKey(dataKey, 'oauth access tokens'),
  },
  WEB_BOT_AUTH_KEY: {
    use: 'requests to sellers',
    curve: 'Ed25519',
    derive: (dataKey) => derivedSigningKey(dataKey, 'web bot auth'),
  },
  PUSH_KEY: { use: 'push messages', curve: 'P-256', derive: derivePushKey },
} as const satisfies Readonly<
  Record<
    string,
    {
      readonly use: string
      readonly curve: KeyCurve
      readonly derive: (dataKey: Uint8Array) => KeyObject
    }
  >
>

export type RotatingKeyName = keyof typeof rotatingKeys

export const rotatingKeyNames = [
  'ACCESS_TOKEN_KEY',
  'WEB_BOT_AUTH_KEY',
  'PUSH_KEY',
] as const satisfies readonly RotatingKeyName[]

/** True for a private key on the curve. @param pem PKCS #8. */
export function isPrivateKeyOn(curve: KeyCurve, pem: string): boolean {
  try {
    return findCurve(createPrivateKey(pem)) === curve
  } catch {
    return false
  }
}

/** @throws Error for anything else; its message has nothing of the text. */
export function parsePrivateKey(curve: KeyCurve, pem: string): KeyObject {
  if (!isPrivateKeyOn(curve, pem)) throw new Error(`is no ${curve} private key in PEM`)
  return createPrivateKey(pem)
}

function findCurve({ asymmetricKeyType, asymmetricKeyDetails }: KeyObject): KeyCurve | null {
  if (asymmetricKeyType === 'ed25519') return 'Ed25519'
  return asymmetricKeyType === 'ec' && asymmetricKeyDetails?.namedCurve === 'prime256v1' ? 'P-256' : null
}

/** A seed beyond the curve's order is no key. */
function derivePushKey(dataKey: Uint8Array): KeyObject {
  for (let attempt = 0; ; attempt += 1) {
    const secret = Buffer.from(derivedSeed(dataKey, `web push ${attempt}`))
    const curve = createECDH('prime256v1')
    try {
      curve.setPrivateKey(secret)
    } catch {
      continue
    }
    const point = curve.getPublicKey()
    const encode = (part: Buffer) => part.toString('base64url')
    const [d, x, y] = [encode(secret), encode(point.subarray(1, 33)), encode(point.subarray(33))]
    return createPrivateKey({ key: { kty: 'EC', crv: 'P-256', d, x, y }, format: 'jwk' })
  }
}
