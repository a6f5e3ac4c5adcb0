/** Doctor checks of keys: what each one is, and where. Never prints a secret. */
import { createPublicKey, type KeyObject } from 'node:crypto'
import { calculateJwkThumbprint } from 'jose'
import { DERIVED, type KeyCurve, rotatingKeyNames, rotatingKeys } from '../core/base/rotating-key.ts'
import { describeKeyReference, isKeyReference, parseKeyReference } from '../core/config/key-reference.ts'
import type { Config } from '../core/config/read-config.ts'
import type { Keys } from '../providers/keys/port.ts'
import { type Finding, fail, ok } from './doctor-probes.ts'

type Env = Readonly<Record<string, string | undefined>>

/** Keys that only follow from the key of the database: each by its use, with why no other may take its place. */
const DERIVED_ONLY: readonly (readonly [use: string, what: string])[] = [
  ['purses', 'secp256k1, one for each purse; their addresses hold money'],
  ['payment channels', 'secp256k1: those of purchases are the purses’, and one claims what is sold'],
  ['cookies', 'keyed hash, of the pages where clients are authorized'],
]
const IN_PROCESS = 'in the memory of the process'
const FOLLOWS = `${IN_PROCESS}, from the key of the database`

/** One finding for each configured key, by the name of its variable. */
export async function checkKeys(config: Config, { keys, env }: { keys: Keys; env: Env }): Promise<Finding[]> {
  const [{ sponsorKey, ownerKey, ownerKeyPrevious }] = config.chains
  const { sessionSecret, sessionSecretPrevious, dataKey, dataKeyPrevious, receiptKey } = config
  const openChainKey = async (name: string, text: string) =>
    `secp256k1, ${(await keys.openChainKey(name, text)).address}`
  const openDocumentKey = async (name: string, text: string) => {
    const x = Buffer.from((await keys.openDocumentKey(name, text)).publicKey).toString('base64url')
    return `Ed25519, kid ${await calculateJwkThumbprint({ kty: 'OKP', crv: 'Ed25519', x })}`
  }
  const openSecret = async (name: string, text: string) => {
    await keys.openSecret(name, text)
    return 'secret of a keyed hash'
  }
  const openSeal = async (name: string, text: string) => {
    await keys.openSecret(name, text)
    return 'seals by AES-256-GCM'
  }
  const configured: readonly (readonly [
    name: string,
    text: string | null,
    open: (name: string, text: string) => Promise<string>,
  ])[] = [
    ['CHAIN_SPONSOR_KEY', sponsorKey, openChainKey],
    ['CHAIN_OWNER_KEY', ownerKey, openChainKey],
    ['CHAIN_OWNER_KEY_PREVIOUS', ownerKeyPrevious, openChainKey],
    ['RECEIPT_KEY', receiptKey, openDocumentKey],
    ['SESSION_SECRET', sessionSecret, openSecret],
    ['SESSION_SECRET_PREVIOUS', sessionSecretPrevious, openSecret],
    ['DATA_KEY', dataKey, openSeal],
    ['DATA_KEY_PREVIOUS', dataKeyPrevious, openSeal],
  ]
  const openRotating = (curve: KeyCurve) => async (name: string, text: string) => {
    const key = await keys.openPrivateKey(name, text, curve)
    return `${curve}, kid ${await computeKeyId(key)}, ${IN_PROCESS}`
  }
  const rotating = rotatingKeyNames.flatMap((name) => {
    const { current, previous } = config.rotatingKeys[name]
    const { curve } = rotatingKeys[name]
    return [
      [name, current, openRotating(curve)] as const,
      [`${name}_PREVIOUS`, previous === DERIVED ? null : previous, openRotating(curve)] as const,
    ]
  })
  const findings = [...configured, ...rotating].map(async ([name, text, open]): Promise<Finding[]> => {
    if (text === null) return []
    const check = `key ${name}`
    try {
      return [ok(check, `${await open(name, text)}, ${locate(name, text, env)}`)]
    } catch (error) {
      const detail = error instanceof Error ? error.message : String(error)
      return [
        fail(
          check,
          detail,
          'No other key takes its place: the gateway does not start. docs/keys.md says what it needs.',
        ),
      ]
    }
  })
  return [...(await Promise.all(findings)).flat(), ...listDerived(config)]
}

/** Keys that follow from the key of the database, which no store but this process can use. */
function listDerived(config: Config): Finding[] {
  const tell = (name: string, detail: string) => ok(`key ${name}`, `${detail}, ${FOLLOWS}`)
  return [
    ...(config.receiptKey === null ? [tell('receipts', 'Ed25519; RECEIPT_KEY replaces it')] : []),
    ...rotatingKeyNames.flatMap((name) => {
      const { use, curve } = rotatingKeys[name]
      const { current, previous } = config.rotatingKeys[name]
      if (current === null) return [tell(use, `${curve}; ${name} replaces it`)]
      return previous === DERIVED ? [tell(use, `${curve}; accepted beside ${name}`)] : []
    }),
    ...DERIVED_ONLY.map(([use, what]) => tell(use, what)),
  ]
}

function computeKeyId(key: KeyObject): Promise<string> {
  return calculateJwkThumbprint(createPublicKey(key).export({ format: 'jwk' }))
}

function locate(name: string, text: string, env: Env): string {
  if (!isKeyReference(text)) return env[`${name}_FILE`] ? 'file' : 'environment'
  const reference = parseKeyReference(text)
  const place = describeKeyReference(reference)
  return reference.wrapped === null ? place : `wrapped by ${place}`
}
