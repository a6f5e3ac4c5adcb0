/**
 * Keys in Google Cloud KMS, over REST. Private keys never leave it. Every value has a checksum in both directions, and what is wrapped is
 * bound to this program. @see https://cloud.google.com/kms/docs/reference/rest
 */
import { importPKCS8, SignJWT } from 'jose'
import { z } from 'zod'
import { systemClock } from '../../core/base/clock.ts'
import type { GoogleReference } from '../../core/config/key-reference.ts'
import type { KeyPlaces } from '../../core/config/keys.ts'
import type { ProviderAnswer } from '../http-client.ts'
import { computeCrc32c } from './crc32c.ts'
import { createKmsCaller, readJson } from './kms-call.ts'
import { googleMachineToken, type Lasting } from './machine-credentials.ts'
import type { KeyAlgorithm, KeyStore } from './port.ts'
import { parseDerSignature, readPublicKey } from './public-key.ts'

/** Audience of tokens that a service account signs itself, wherever the service is reached. @see https://google.aip.dev/auth/4111 */
const AUDIENCE = 'https://cloudkms.googleapis.com/'
const TOKEN_SECONDS = 3_600
/** A token is replaced so long before its end. */
const RENEW_SECONDS = 600
const WRAPPED = Buffer.from('bursar wrapped secret')
const algorithms: Readonly<Record<KeyAlgorithm, string>> = {
  secp256k1: 'EC_SIGN_SECP256K1_SHA256',
  Ed25519: 'EC_SIGN_ED25519',
}

const bytes = z.base64().transform((text) => Buffer.from(text, 'base64'))
const checksum = z.string().regex(/^\d{1,10}$/)
const protectionLevel = z.string()
const publicKey = z.object({
  ...{ name: z.string(), pem: z.string(), pemCrc32c: checksum, algorithm: z.string(), protectionLevel },
})
const signature = z.object({
  name: z.string(),
  signature: bytes,
  signatureCrc32c: checksum,
  verifiedDigestCrc32c: z.boolean().optional(),
  verifiedDataCrc32c: z.boolean().optional(),
  protectionLevel,
})
const encrypted = z.object({
  name: z.string(),
  ciphertext: bytes,
  ciphertextCrc32c: checksum,
  verifiedPlaintextCrc32c: z.literal(true),
  verifiedAdditionalAuthenticatedDataCrc32c: z.literal(true),
})
const decrypted = z.object({ plaintext: bytes, plaintextCrc32c: checksum })
const fault = z.object({ error: z.object({ status: z.string().regex(/^[A-Z_]{1,40}$/) }) })

/** @throws Error when the credentials are missing. */
export function createGoogleStore(places: KeyPlaces['gcpKms']): KeyStore<GoogleReference> {
  const { endpoint, credentialsFrom, metadataHost } = places
  const token = credentialsFrom === null ? ownToken(places) : googleMachineToken(metadataHost)
  const call = createKmsCaller(({ status }) => status === 429 || status >= 500)

  async function request<Answer>(path: string, parameters: object | null, schema: z.ZodType<Answer>) {
    const ask = () =>
      call(async () => ({
        url: `${endpoint}/v1/${path}`,
        headers: {
          authorization: `Bearer ${await token.read()}`,
          ...(parameters === null ? {} : { 'content-type': 'application/json' }),
        },
        ...(parameters === null ? {} : { method: 'POST', body: JSON.stringify(parameters) }),
      }))
    let answer = await ask()
    if (answer.status === 401) {
      // Its end was computed by a clock that was perhaps set back since, or it was withdrawn: once more with a new one.
      token.forget()
      answer = await ask()
    }
    if (!answer.ok) throw new Error(explain(answer))
    const read = schema.safeParse(readJson(answer))
    if (!read.success) throw new Error('its answer is not as documented, or lacks a checksum')
    return read.data
  }

  return {
    async openKey({ key, version }, algorithm) {
      if (version === null)
        throw new Error('a key that signs is named with its version: add /cryptoKeyVersions/1')
      const name = `${key}/cryptoKeyVersions/${version}`
      const found = await request(`${name}/publicKey`, null, publicKey)
      requireSum(Buffer.from(found.pem), found.pemCrc32c)
      if (found.name !== name) throw new Error('it answered for another key')
      if (found.algorithm !== algorithms[algorithm])
        throw new Error(`it is no key of the algorithm ${algorithms[algorithm]}`)
      requireHardware(algorithm, found.protectionLevel)
      return {
        publicKey: readPublicKey(found.pem, algorithm),
        async sign(data) {
          const value = encode(data)
          const parameters =
            algorithm === 'secp256k1'
              ? { digest: { sha256: value.text }, digestCrc32c: value.sum }
              : { data: value.text, dataCrc32c: value.sum }
          const signed = await request(`${name}:asymmetricSign`, parameters, signature)
          requireSum(signed.signature, signed.signatureCrc32c)
          const isVerified =
            algorithm === 'secp256k1' ? signed.verifiedDigestCrc32c : signed.verifiedDataCrc32c
          if (isVerified !== true) throw new Error('it did not check what it signed')
          if (signed.name !== name) throw new Error('it answered for another key')
          requireHardware(algorithm, signed.protectionLevel)
          return algorithm === 'secp256k1' ? parseDerSignature(signed.signature) : signed.signature
        },
      }
    },
    async encrypt({ key, version }, secret) {
      requireNoVersion(version)
      const [plain, bound] = [encode(secret), encode(WRAPPED)]
      const sealed = await request(
        `${key}:encrypt`,
        {
          ...{ plaintext: plain.text, plaintextCrc32c: plain.sum },
          ...{ additionalAuthenticatedData: bound.text, additionalAuthenticatedDataCrc32c: bound.sum },
        },
        encrypted,
      )
      requireSum(sealed.ciphertext, sealed.ciphertextCrc32c)
      if (!sealed.name.startsWith(`${key}/cryptoKeyVersions/`)) throw new Error('it answered for another key')
      return sealed.ciphertext
    },
    async decrypt({ key, version }, wrapped) {
      requireNoVersion(version)
      const [sealed, bound] = [encode(wrapped), encode(WRAPPED)]
      const opened = await request(
        `${key}:decrypt`,
        {
          ...{ ciphertext: sealed.text, ciphertextCrc32c: sealed.sum },
          ...{ additionalAuthenticatedData: bound.text, additionalAuthenticatedDataCrc32c: bound.sum },
        },
        decrypted,
      )
      requireSum(opened.plaintext, opened.plaintextCrc32c)
      return opened.plaintext
    },
    close: async () => {},
  }
}

/** Tokens that the key of a service account signs. */
function ownToken({ credentials }: KeyPlaces['gcpKms']): Lasting<string> {
  if (credentials === null)
    throw new Error(
      'GCP_KMS_CREDENTIALS_FILE is missing: it is the path of the JSON key of a service account; GCP_KMS_CREDENTIALS_FROM=instance uses that of the machine in its place',
    )
  const { email, keyId, privateKey } = credentials
  let token: { readonly text: string; readonly expiresAt: number } | undefined
  return {
    async read() {
      const now = Math.floor(systemClock().getTime() / 1_000)
      if (
        token !== undefined &&
        now < token.expiresAt - RENEW_SECONDS &&
        now >= token.expiresAt - TOKEN_SECONDS
      )
        return token.text
      const expiresAt = now + TOKEN_SECONDS
      const key = await importPKCS8(privateKey, 'RS256').catch((cause: unknown) => {
        throw new Error('the private key of GCP_KMS_CREDENTIALS is no RSA key', { cause })
      })
      const text = await new SignJWT({ iss: email, sub: email, aud: AUDIENCE, iat: now, exp: expiresAt })
        .setProtectedHeader({ alg: 'RS256', typ: 'JWT', kid: keyId })
        .sign(key)
      token = { text, expiresAt }
      return text
    },
    forget() {
      token = undefined
    },
  }
}

/** 64-bit numbers are strings in its JSON. */
function encode(data: Uint8Array): { readonly text: string; readonly sum: string } {
  return { text: Buffer.from(data).toString('base64'), sum: String(computeCrc32c(data)) }
}

function requireSum(data: Uint8Array, sum: string): void {
  if (String(computeCrc32c(data)) !== sum) throw new Error('its answer was changed on the way (CRC32C)')
}

/** Keys of chains are offered in hardware only. */
function requireHardware(algorithm: KeyAlgorithm, level: string): void {
  if (algorithm === 'secp256k1' && !['HSM', 'HSM_SINGLE_TENANT'].includes(level))
    throw new Error('it is not kept in hardware: its protection level must be HSM')
}

function requireNoVersion(version: string | null): void {
  if (version !== null)
    throw new Error('a key that wraps is named without a version: each of its versions opens what it sealed')
}

const remedies: Readonly<Record<string, string>> = {
  UNAUTHENTICATED:
    'it refuses the credentials: check GCP_KMS_CREDENTIALS, or the scopes of the machine, and its clock',
  PERMISSION_DENIED:
    'allow the service account to use this key, by roles/cloudkms.signerVerifier or roles/cloudkms.cryptoKeyEncrypterDecrypter, or enable the API',
  NOT_FOUND: 'there is no such key or version',
  FAILED_PRECONDITION: 'the version of the key is disabled or destroyed, or for another use',
  INVALID_ARGUMENT:
    'it refuses the request: the key is for another use, or a secret was wrapped by another key or changed',
}

function explain(answer: ProviderAnswer): string {
  const status = fault.safeParse(readJson(answer)).data?.error.status ?? ''
  return `${remedies[status] ?? 'it refuses the request'} (${answer.status}${status === '' ? '' : ` ${status}`})`
}
