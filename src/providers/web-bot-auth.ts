/**
 * Web Bot Auth: requests to sellers are signed as this deployment's, by a key that its directory publishes, so that a seller can
 * tell them from those that only claim to be.
 * @see https://datatracker.ietf.org/doc/draft-meunier-web-bot-auth-architecture/
 * @see https://datatracker.ietf.org/doc/draft-meunier-http-message-signatures-directory/
 */
import { createPublicKey, type KeyObject, sign } from 'node:crypto'
import { createSignature } from 'http-message-sig'
import { calculateJwkThumbprint } from 'jose'
import type { Clock } from '../core/base/clock.ts'
import { randomToken } from '../core/base/ids.ts'
import type { RotatingKey } from '../core/base/rotating-key.ts'
import type { PublicFetch } from './public-fetch.ts'

export const BOT_DIRECTORY_PATH = '/.well-known/http-message-signatures-directory'
export const BOT_DIRECTORY_TYPE = 'application/http-message-signatures-directory+json'

/** How long a signature is valid: a request is sent at once. */
const LIFE_SECONDS = 60
const NONCE_LENGTH = 43
const OWN_FIELDS = ['signature', 'signature-input', 'signature-agent']

/** @property keyId RFC 7638 thumbprint. @property jwk public. */
interface BotKey {
  readonly privateKey: KeyObject
  readonly keyId: string
  readonly jwk: { readonly kty: 'OKP'; readonly crv: 'Ed25519'; readonly x: string }
}

export interface WebBotAuth {
  /** Signs what is marked so. */
  readonly wrap: (fetchPublic: PublicFetch) => PublicFetch
  /** The public keys, and the fields by which this deployment proves that it has them: a copy elsewhere proves nothing. */
  readonly directory: () => Promise<{
    readonly body: string
    readonly fields: Readonly<Record<string, string>>
  }>
}

/** @param origin of this deployment, where its directory is. */
export function createWebBotAuth({
  keys,
  origin,
  clock,
}: {
  readonly keys: RotatingKey
  readonly origin: string
  readonly clock: Clock
}): WebBotAuth {
  let described: Promise<readonly [BotKey, ...BotKey[]]> | undefined
  const list = () => (described ??= describeKeys(keys))
  const signer = ({ privateKey }: BotKey) => ({
    algorithm: 'ed25519',
    sign: (data: Uint8Array) => sign(null, data, privateKey),
  })
  const parameters = ({ keyId }: BotKey, tag: string) => {
    const created = Math.floor(clock().getTime() / 1000)
    return {
      ...{ created, expires: created + LIFE_SECONDS, keyid: keyId, alg: 'ed25519' },
      ...{ nonce: randomToken(NONCE_LENGTH), tag },
    }
  }
  return {
    wrap: (fetchPublic) => async (request) => {
      const { url, method, headers } = request
      // A program that signs by itself is its own bot.
      const isSigned = Object.keys(headers).some((name) => OWN_FIELDS.includes(name.toLowerCase()))
      if (request.identify !== true || isSigned) return fetchPublic(request)
      const [own] = await list()
      const agent = `"${origin}"`
      const { signature, signatureInput } = await createSignature(
        {
          ...{ kind: 'request', method, targetUri: String(url) },
          fields: [{ name: 'signature-agent', value: agent }],
        },
        {
          components: ['@authority', '@method', '@path', 'signature-agent'],
          ...{ parameters: parameters(own, 'web-bot-auth'), signer: signer(own) },
        },
      )
      const signed = { 'signature-agent': agent, 'signature-input': signatureInput, signature }
      return fetchPublic({ ...request, headers: { ...headers, ...signed } })
    },
    directory: async () => {
      const published = await list()
      // Each key that is published proves itself.
      const signatures = await Promise.all(
        published.map((own, at) =>
          createSignature(
            {
              ...{ kind: 'response', status: 200, fields: [] },
              request: {
                ...{ kind: 'request', method: 'GET', fields: [] },
                targetUri: `${origin}${BOT_DIRECTORY_PATH}`,
              },
            },
            {
              ...{ label: `sig${at + 1}`, signer: signer(own) },
              components: [{ name: '@authority', parameters: { req: true } }],
              parameters: parameters(own, 'http-message-signatures-directory'),
            },
          ),
        ),
      )
      const join = (field: 'signature' | 'signatureInput') => signatures.map((one) => one[field]).join(', ')
      return {
        body: JSON.stringify({
          keys: published.map(({ jwk, keyId }) => ({ ...jwk, kid: keyId, use: 'sig', alg: 'EdDSA' })),
        }),
        fields: { 'signature-input': join('signatureInput'), signature: join('signature') },
      }
    },
  }
}

async function describeKeys({ current, previous }: RotatingKey): Promise<readonly [BotKey, ...BotKey[]]> {
  const others = previous === null || previous.equals(current) ? [] : [await describeKey(previous)]
  return [await describeKey(current), ...others]
}

async function describeKey(privateKey: KeyObject): Promise<BotKey> {
  const { x = '' } = createPublicKey(privateKey).export({ format: 'jwk' })
  const jwk = { kty: 'OKP', crv: 'Ed25519', x } as const
  return { privateKey, keyId: await calculateJwkThumbprint(jwk), jwk }
}
