/**
 * Keys in AWS KMS: its JSON protocol, signed by Signature Version 4. Private keys never leave it. What is wrapped is bound to this program
 * by an encryption context. @see https://docs.aws.amazon.com/kms/latest/APIReference/Welcome.html
 */
import { AwsV4Signer } from 'aws4fetch'
import { z } from 'zod'
import { systemClock } from '../../core/base/clock.ts'
import type { AwsReference } from '../../core/config/key-reference.ts'
import type { KeyPlaces } from '../../core/config/keys.ts'
import type { ProviderAnswer } from '../http-client.ts'
import { createKmsCaller, readJson } from './kms-call.ts'
import { type AwsCredentials, awsMachineCredentials, type Lasting } from './machine-credentials.ts'
import type { KeyStore } from './port.ts'
import { parseDerSignature, readPublicKey } from './public-key.ts'

/** Authenticated with what is wrapped, and shown in CloudTrail. */
const CONTEXT = { purpose: 'bursar wrapped secret' }
const SIGNING = 'ECDSA_SHA_256'
const WRAPPING = 'SYMMETRIC_DEFAULT'
/** Of credentials with a session. */
const ENDED = 'ExpiredTokenException'
/** Errors that may not occur the next time. @see https://docs.aws.amazon.com/kms/latest/APIReference/CommonErrors.html */
const PASSING: ReadonlySet<string> = new Set([
  'DependencyTimeoutException',
  'InternalFailure',
  'KeyUnavailableException',
  'KMSInternalException',
  'LimitExceededException',
  'RequestTimeoutException',
  'ServiceUnavailable',
  'ServiceUnavailableException',
  'Throttling',
  'ThrottlingException',
])

const bytes = z.base64().transform((text) => Buffer.from(text, 'base64'))
const publicKey = z.object({
  KeyId: z.string(),
  PublicKey: bytes,
  KeySpec: z.string(),
  KeyUsage: z.string(),
  SigningAlgorithms: z.array(z.string()).optional(),
})
const signature = z.object({ KeyId: z.string(), Signature: bytes, SigningAlgorithm: z.literal(SIGNING) })
const encrypted = z.object({
  KeyId: z.string(),
  CiphertextBlob: bytes,
  EncryptionAlgorithm: z.literal(WRAPPING),
})
const decrypted = z.object({ KeyId: z.string(), Plaintext: bytes, EncryptionAlgorithm: z.literal(WRAPPING) })
const fault = z.object({ __type: z.string() })

/** @throws Error when a credential is missing. */
export function createAwsStore(places: KeyPlaces['awsKms']): KeyStore<AwsReference> {
  const { endpoint } = places
  const credentials = places.credentialsFrom === null ? fixed(places) : awsMachineCredentials(places)
  const call = createKmsCaller((answer) => {
    const name = readFault(answer)
    // The next attempt reads those of the machine anew.
    if (name === ENDED && places.credentialsFrom !== null) credentials.forget()
    return answer.status >= 500 || PASSING.has(name) || (name === ENDED && places.credentialsFrom !== null)
  })

  async function request<Answer extends { readonly KeyId: string }>(
    { arn, partition, region }: AwsReference,
    operation: 'GetPublicKey' | 'Sign' | 'Encrypt' | 'Decrypt',
    parameters: object,
    schema: z.ZodType<Answer>,
  ): Promise<Answer> {
    const domain = partition === 'aws-cn' ? 'amazonaws.com.cn' : 'amazonaws.com'
    const url = `${endpoint ?? `https://kms.${region}.${domain}`}/`
    const body = JSON.stringify({ KeyId: arn, ...parameters })
    const answer = await call(async () => {
      const signer = new AwsV4Signer({
        ...{ method: 'POST', url, body, region, service: 'kms' },
        ...(await credentials.read()),
        headers: {
          'content-type': 'application/x-amz-json-1.1',
          'x-amz-target': `TrentService.${operation}`,
        },
        datetime: systemClock()
          .toISOString()
          .replace(/[:-]|\.\d{3}/g, ''),
        allHeaders: true,
      })
      const { headers } = await signer.sign()
      return { url, method: 'POST', headers, body }
    })
    if (!answer.ok) throw new Error(explain(operation, answer))
    const read = schema.safeParse(readJson(answer))
    if (!read.success) throw new Error(`its answer to ${operation} is not as documented`)
    if (read.data.KeyId !== arn) throw new Error('it answered for another key')
    return read.data
  }

  return {
    async openKey(reference, algorithm) {
      if (algorithm === 'Ed25519')
        throw new Error(
          'AWS KMS signs at most 4096 bytes by Ed25519, and a receipt may be longer, which would stop all after it; keep an Ed25519 key wrapped instead: bursar keys wrap RECEIPT_KEY --with aws-kms://…',
        )
      const found = await request(reference, 'GetPublicKey', {}, publicKey)
      if (found.KeySpec !== 'ECC_SECG_P256K1' || found.KeyUsage !== 'SIGN_VERIFY')
        throw new Error('it is no key of the spec ECC_SECG_P256K1 for SIGN_VERIFY')
      if (found.SigningAlgorithms?.includes(SIGNING) !== true)
        throw new Error(`it does not sign by ${SIGNING}`)
      return {
        publicKey: readPublicKey(found.PublicKey, algorithm),
        async sign(digest) {
          const Message = Buffer.from(digest).toString('base64')
          const parameters = { Message, MessageType: 'DIGEST', SigningAlgorithm: SIGNING }
          return parseDerSignature((await request(reference, 'Sign', parameters, signature)).Signature)
        },
      }
    },
    async encrypt(reference, secret) {
      const Plaintext = Buffer.from(secret).toString('base64')
      const parameters = { Plaintext, EncryptionContext: CONTEXT, EncryptionAlgorithm: WRAPPING }
      return (await request(reference, 'Encrypt', parameters, encrypted)).CiphertextBlob
    },
    async decrypt(reference, wrapped) {
      const CiphertextBlob = Buffer.from(wrapped).toString('base64')
      const parameters = { CiphertextBlob, EncryptionContext: CONTEXT, EncryptionAlgorithm: WRAPPING }
      return (await request(reference, 'Decrypt', parameters, decrypted)).Plaintext
    },
    close: async () => {},
  }
}

type FixedCredentials = Omit<AwsCredentials, 'sessionToken'> & { readonly sessionToken?: string }

function fixed({
  accessKeyId,
  secretAccessKey,
  sessionToken,
}: KeyPlaces['awsKms']): Lasting<FixedCredentials> {
  if (accessKeyId === null || secretAccessKey === null)
    throw new Error(
      'AWS_KMS_ACCESS_KEY_ID or AWS_KMS_SECRET_ACCESS_KEY is missing; AWS_KMS_CREDENTIALS_FROM uses the role of a machine in their place',
    )
  const credentials = { accessKeyId, secretAccessKey, ...(sessionToken === null ? {} : { sessionToken }) }
  return { read: async () => credentials, forget: () => {} }
}

/** The name of an error; empty for an answer that has none. */
function readFault(answer: ProviderAnswer): string {
  if (answer.ok) return ''
  const { data } = fault.safeParse(readJson(answer))
  // Some have a namespace before it, and newer ones an address after it.
  return /^(?:[\w.]+#)?([A-Za-z]{1,64})(?::|$)/.exec(data?.__type ?? '')?.[1] ?? ''
}

const CREDENTIALS =
  'it refuses the credentials: check AWS_KMS_ACCESS_KEY_ID, AWS_KMS_SECRET_ACCESS_KEY, AWS_KMS_SESSION_TOKEN, or the role of the machine, and its clock'
const remedies: Readonly<Record<string, string>> = {
  [ENDED]:
    'AWS_KMS_SESSION_TOKEN has expired: set new credentials and restart, or use the role of the machine',
  IncompleteSignature: CREDENTIALS,
  InvalidClientTokenId: CREDENTIALS,
  InvalidSignatureException: CREDENTIALS,
  MissingAuthenticationToken: CREDENTIALS,
  SignatureDoesNotMatch: CREDENTIALS,
  UnrecognizedClientException: CREDENTIALS,
  NotFoundException: 'there is no such key',
  DisabledException: 'the key is disabled: enable it',
  KMSInvalidStateException: 'the key is disabled or awaits its deletion: cancel that and enable it',
  InvalidKeyUsageException: 'the key is for another use or of another spec',
  IncorrectKeyException: 'another key has wrapped this secret',
  InvalidCiphertextException:
    'it does not open the wrapped secret, which another key has wrapped, or which was changed',
}

function explain(operation: string, answer: ProviderAnswer): string {
  const name = readFault(answer)
  const remedy =
    name === 'AccessDeniedException'
      ? `allow kms:${operation} of this key to these credentials`
      : remedies[name]
  return `${remedy ?? `it refuses ${operation}`} (${answer.status}${name === '' ? '' : ` ${name}`})`
}
