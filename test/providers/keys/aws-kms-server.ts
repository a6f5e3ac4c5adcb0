/**
 * AWS KMS on this machine: signatures of requests, shapes, uses of keys and errors of its documents, with real cryptography.
 * @see https://docs.aws.amazon.com/kms/latest/APIReference/API_Operations.html
 * @see https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html
 */
import {
  createCipheriv,
  createDecipheriv,
  createHash,
  createHmac,
  createPublicKey,
  randomBytes,
  randomUUID,
} from 'node:crypto'
import { z } from 'zod'
import {
  corrupt,
  type Disturbance,
  type KmsAnswer,
  type KmsRequest,
  type KmsServer,
  newChainKey,
  startKmsServer,
} from './kms-server.ts'

export const REGION = 'eu-central-1'
export const ACCESS_KEY_ID = 'AKIAIOSFODNN7EXAMPLE'
export const SECRET = 'wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY'
export const SESSION_TOKEN = 'a-session-token-of-the-test=='

type Key =
  | { readonly kind: 'sign'; readonly pair: ReturnType<typeof newChainKey>; spec: string; state: string }
  | { readonly kind: 'wrap'; readonly secret: Buffer; spec: string; state: string }

export interface AwsServer extends KmsServer {
  /** Settings of a gateway. */
  readonly env: Readonly<Record<string, string>>
  /** Reference of each key. */
  readonly at: Readonly<Record<'sponsor' | 'owner' | 'wrapping' | 'wrapping2' | 'p256', string>>
  address(name: 'sponsor' | 'owner'): `0x${string}`
  /** @param state as of `DescribeKey`. */
  setState(name: 'sponsor' | 'wrapping', state: 'Enabled' | 'Disabled' | 'PendingDeletion'): void
  /** Lets the credentials no longer use any key. */
  deny(isDenied: boolean): void
  /** Ends the session, and begins one with another token. */
  endSession(next: string): void
}

const base64 = z.base64().min(1)
const operations = {
  GetPublicKey: z.strictObject({ KeyId: z.string() }),
  Sign: z.strictObject({
    KeyId: z.string(),
    Message: base64,
    MessageType: z.enum(['RAW', 'DIGEST']),
    SigningAlgorithm: z.enum(['ECDSA_SHA_256', 'ECDSA_SHA_384', 'ED25519_SHA_512']),
  }),
  Encrypt: z.strictObject({
    KeyId: z.string(),
    Plaintext: base64,
    EncryptionContext: z.record(z.string(), z.string()).optional(),
    EncryptionAlgorithm: z.literal('SYMMETRIC_DEFAULT'),
  }),
  Decrypt: z.strictObject({
    KeyId: z.string(),
    CiphertextBlob: base64,
    EncryptionContext: z.record(z.string(), z.string()).optional(),
    EncryptionAlgorithm: z.literal('SYMMETRIC_DEFAULT'),
  }),
}

/** An error of the service, by its name. */
class Refusal extends Error {}

export async function startAwsServer({
  hasSession = false,
}: {
  readonly hasSession?: boolean
} = {}): Promise<AwsServer> {
  const keys = new Map<string, Key>()
  const add = (key: Key) => {
    const arn = `arn:aws:kms:${REGION}:111122223333:key/${randomUUID()}`
    keys.set(arn, key)
    return arn
  }
  const pairs = { sponsor: newChainKey(), owner: newChainKey(), other: newChainKey() }
  const signing = (pair: ReturnType<typeof newChainKey>, spec = 'ECC_SECG_P256K1'): Key => {
    return { kind: 'sign', pair, spec, state: 'Enabled' }
  }
  const wrapping = (): Key => {
    return { kind: 'wrap', secret: randomBytes(32), spec: 'SYMMETRIC_DEFAULT', state: 'Enabled' }
  }
  const arns = {
    sponsor: add(signing(pairs.sponsor)),
    owner: add(signing(pairs.owner)),
    p256: add(signing(newChainKey(), 'ECC_NIST_P256')),
    wrapping: add(wrapping()),
    wrapping2: add(wrapping()),
  }
  let isDenied = false
  let session = hasSession ? SESSION_TOKEN : null
  const ended = new Set<string | null>()

  function find(arn: string, kind: Key['kind']): Key {
    const key = keys.get(arn)
    if (key === undefined) throw new Refusal('NotFoundException')
    if (key.state === 'Disabled') throw new Refusal('DisabledException')
    if (key.state !== 'Enabled') throw new Refusal('KMSInvalidStateException')
    if (key.kind !== kind) throw new Refusal('InvalidKeyUsageException')
    return key
  }

  async function perform(operation: string, body: string, disturbed: Disturbance | null): Promise<object> {
    const named = (arn: string) => (disturbed === 'other-name' ? arns.owner : arn)
    const perhaps = (data: Buffer) => (disturbed === 'corrupt' ? corrupt(data) : data).toString('base64')
    switch (operation) {
      case 'GetPublicKey': {
        const { KeyId } = parse(operations.GetPublicKey, body)
        // A key of another kind has no public key.
        if (keys.get(KeyId)?.kind === 'wrap') throw new Refusal('UnsupportedOperationException')
        const key = find(KeyId, 'sign')
        if (key.kind !== 'sign') throw new Refusal('InvalidKeyUsageException')
        const jwk = createPublicKey({ key: key.pair.jwk, format: 'jwk' })
        return {
          KeyId: named(KeyId),
          PublicKey: jwk.export({ type: 'spki', format: 'der' }).toString('base64'),
          CustomerMasterKeySpec: key.spec,
          KeySpec: key.spec,
          KeyUsage: 'SIGN_VERIFY',
          SigningAlgorithms: ['ECDSA_SHA_256'],
        }
      }
      case 'Sign': {
        const { KeyId, Message, MessageType, SigningAlgorithm } = parse(operations.Sign, body)
        const key = find(KeyId, 'sign')
        if (key.kind !== 'sign' || SigningAlgorithm !== 'ECDSA_SHA_256')
          throw new Refusal('InvalidKeyUsageException')
        const message = Buffer.from(Message, 'base64')
        if (MessageType === 'DIGEST' && message.length !== 32) throw new Refusal('ValidationException')
        const digest = MessageType === 'DIGEST' ? message : createHash('sha256').update(message).digest()
        const pair = disturbed === 'other-key' ? pairs.other : key.pair
        return { KeyId: named(KeyId), Signature: perhaps(await pair.sign(digest)), SigningAlgorithm }
      }
      case 'Encrypt': {
        const { KeyId, Plaintext, EncryptionContext, EncryptionAlgorithm } = parse(operations.Encrypt, body)
        const key = find(KeyId, 'wrap')
        const plain = Buffer.from(Plaintext, 'base64')
        if (plain.length > 4096) throw new Refusal('ValidationException')
        if (key.kind !== 'wrap') throw new Refusal('InvalidKeyUsageException')
        const iv = randomBytes(12)
        const cipher = createCipheriv('aes-256-gcm', key.secret, iv).setAAD(encodeContext(EncryptionContext))
        const sealed = Buffer.concat([iv, cipher.update(plain), cipher.final(), cipher.getAuthTag()])
        return { KeyId: named(KeyId), CiphertextBlob: perhaps(sealed), EncryptionAlgorithm }
      }
      case 'Decrypt': {
        const { KeyId, CiphertextBlob, EncryptionContext, EncryptionAlgorithm } = parse(
          operations.Decrypt,
          body,
        )
        const key = find(KeyId, 'wrap')
        if (key.kind !== 'wrap') throw new Refusal('InvalidKeyUsageException')
        const sealed = Buffer.from(CiphertextBlob, 'base64')
        try {
          const decipher = createDecipheriv('aes-256-gcm', key.secret, sealed.subarray(0, 12))
            .setAAD(encodeContext(EncryptionContext))
            .setAuthTag(sealed.subarray(-16))
          const plain = Buffer.concat([decipher.update(sealed.subarray(12, -16)), decipher.final()])
          return { KeyId: named(KeyId), Plaintext: perhaps(plain), EncryptionAlgorithm }
        } catch {
          throw new Refusal('InvalidCiphertextException')
        }
      }
      default:
        throw new Refusal('UnknownOperationException')
    }
  }

  async function answer(request: KmsRequest, disturbed: Disturbance | null): Promise<KmsAnswer> {
    if (disturbed === 'fail') return { status: 500, body: { __type: 'KMSInternalException' } }
    try {
      if (disturbed === 'throttle') throw new Refusal('ThrottlingException')
      if (request.method !== 'POST' || request.path !== '/') throw new Refusal('UnknownOperationException')
      if (ended.has(request.headers['x-amz-security-token'] ?? '')) throw new Refusal('ExpiredTokenException')
      checkSignature(request, session)
      if (isDenied) throw new Refusal('AccessDeniedException')
      const [, operation = ''] = /^TrentService\.(\w+)$/.exec(request.headers['x-amz-target'] ?? '') ?? []
      return { status: 200, body: await perform(operation, request.body, disturbed) }
    } catch (error) {
      if (!(error instanceof Refusal)) throw error
      return {
        status: 400,
        body: { __type: `com.amazonaws.kms#${error.message}`, message: `${SECRET} is not said` },
      }
    }
  }

  const server = await startKmsServer(answer)
  const at = (name: keyof typeof arns) => `aws-kms://${arns[name]}`
  return {
    ...server,
    env: {
      AWS_KMS_ENDPOINT: server.url,
      AWS_KMS_ACCESS_KEY_ID: ACCESS_KEY_ID,
      AWS_KMS_SECRET_ACCESS_KEY: SECRET,
      ...(hasSession ? { AWS_KMS_SESSION_TOKEN: SESSION_TOKEN } : {}),
    },
    at: {
      sponsor: at('sponsor'),
      owner: at('owner'),
      wrapping: at('wrapping'),
      wrapping2: at('wrapping2'),
      p256: at('p256'),
    },
    address: (name) => pairs[name].address,
    setState(name, state) {
      const key = keys.get(arns[name])
      if (key !== undefined) key.state = state
    },
    deny(next) {
      isDenied = next
    },
    endSession(next) {
      ended.add(session)
      session = next
    },
  }
}

function parse<Schema extends z.ZodType>(schema: Schema, body: string): z.output<Schema> {
  const { success, data } = schema.safeParse(JSON.parse(body))
  if (!success) throw new Refusal('ValidationException')
  return data
}

function encodeContext(context: Readonly<Record<string, string>> = {}): Buffer {
  return Buffer.from(JSON.stringify(Object.entries(context).sort()))
}

/** Signature Version 4: everything that is sent is signed, within five minutes. */
function checkSignature({ method, path, headers, body }: KmsRequest, session: string | null): void {
  const { authorization = '', host = '' } = headers
  const match =
    /^AWS4-HMAC-SHA256 Credential=(\w+)\/(\d{8})\/([\w-]+)\/kms\/aws4_request, SignedHeaders=([a-z0-9;-]+), Signature=([0-9a-f]{64})$/.exec(
      authorization,
    )
  if (match === null) throw new Refusal('IncompleteSignature')
  const [, id = '', day = '', region = '', list = '', given = ''] = match
  const date = headers['x-amz-date'] ?? ''
  const names = list.split(';')
  const required = [
    'host',
    'content-type',
    'x-amz-date',
    'x-amz-target',
    ...(session === null ? [] : ['x-amz-security-token']),
  ]
  const isComplete =
    required.every((name) => names.includes(name)) && names.join() === names.toSorted().join()
  const at = Date.parse(date.replace(/^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/, '$1-$2-$3T$4:$5:$6Z'))
  if (!isComplete || host === '' || headers['content-type'] !== 'application/x-amz-json-1.1')
    throw new Refusal('IncompleteSignature')
  if (id !== ACCESS_KEY_ID || (session !== null && headers['x-amz-security-token'] !== session))
    throw new Refusal('UnrecognizedClientException')
  if (!(Math.abs(Date.now() - at) < 300_000) || !date.startsWith(day) || region !== REGION)
    throw new Refusal('InvalidSignatureException')
  const hash = (text: string) => createHash('sha256').update(text).digest('hex')
  const hmac = (key: string | Buffer, text: string) => createHmac('sha256', key).update(text).digest()
  const canonical = [
    method,
    path,
    '',
    ...names.map((name) => `${name}:${(headers[name] ?? '').trim()}`),
    '',
    list,
    hash(body),
  ].join('\n')
  const scope = `${day}/${region}/kms/aws4_request`
  const key = [region, 'kms', 'aws4_request'].reduce(hmac, hmac(`AWS4${SECRET}`, day))
  const expected = hmac(key, `AWS4-HMAC-SHA256\n${date}\n${scope}\n${hash(canonical)}`).toString('hex')
  if (given !== expected) throw new Refusal('InvalidSignatureException')
}
