/** Doctor checks of keys: what each one is, and where. Never prints a secret. */
import { calculateJwkThumbprint } from 'jose'
import { describeKeyReference, isKeyReference, parseKeyReference } from '../core/config/key-reference.ts'
import type { Config } from '../core/config/read-config.ts'
import type { Keys } from '../providers/keys/port.ts'
import { type Finding, fail, ok } from './doctor-probes.ts'

type Env = Readonly<Record<string, string | undefined>>

/** Keys that follow from the key of the database, whose value no store but this process can use. */
const DERIVED = [
  'access tokens (Ed25519)',
  'requests to sellers (Ed25519)',
  'push messages (P-256)',
  'purses (secp256k1)',
]

/** One finding for each configured key, by the name of its variable. */
export async function checkKeys(config: Config, { keys, env }: { keys: Keys; env: Env }): Promise<Finding[]> {
  const [{ sponsorKey, ownerKey }] = config.chains
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
    ['RECEIPT_KEY', receiptKey, openDocumentKey],
    ['SESSION_SECRET', sessionSecret, openSecret],
    ['SESSION_SECRET_PREVIOUS', sessionSecretPrevious, openSecret],
    ['DATA_KEY', dataKey, openSeal],
    ['DATA_KEY_PREVIOUS', dataKeyPrevious, openSeal],
  ]
  const findings = configured.map(async ([name, text, open]): Promise<Finding[]> => {
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
  const derived = receiptKey === null ? ['receipts (Ed25519)', ...DERIVED] : DERIVED
  return [
    ...(await Promise.all(findings)).flat(),
    ok('derived keys', `in the memory of the process, from the key of the database: ${derived.join(', ')}`),
  ]
}

function locate(name: string, text: string, env: Env): string {
  if (!isKeyReference(text)) return env[`${name}_FILE`] ? 'file' : 'environment'
  const reference = parseKeyReference(text)
  const place = describeKeyReference(reference)
  return reference.wrapped === null ? place : `wrapped by ${place}`
}
