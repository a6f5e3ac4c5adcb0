/**
 * Google Cloud KMS on this machine: tokens, shapes, checksums, uses of keys and errors of its documents, with real cryptography.
 * @see https://cloud.google.com/kms/docs/reference/rest/v1/projects.locations.keyRings.cryptoKeys.cryptoKeyVersions/asymmetricSign
 * @see https://google.aip.dev/auth/4111
 */
import {
  createCipheriv,
  createDecipheriv,
  createPublicKey,
  generateKeyPairSync,
  randomBytes,
  sign,
} from 'node:crypto'
import { jwtVerify } from 'jose'
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

const EMAIL = 'gateway@project-1.iam.gserviceaccount.com'
const KEY_ID = '6f3f9f2c5f0b4e6f8f7a'
const RING = 'projects/project-1/locations/europe-west3/keyRings/bursar'

interface Version {
  readonly algorithm: string
  level: string
  state: string
  /** SubjectPublicKeyInfo in PEM. */
  readonly pem: string
  sign(data: Buffer, isDisturbed: boolean): Promise<Buffer>
}

export interface GoogleServer extends KmsServer {
  /** Settings of a gateway. */
  readonly env: Readonly<Record<string, string>>
  /** Reference of each key. */
  readonly at: Readonly<
    Record<'sponsor' | 'owner' | 'receipts' | 'wrapping' | 'wrapping2' | 'software', string>
  >
  address(name: 'sponsor' | 'owner'): `0x${string}`
  setState(name: 'sponsor', state: 'ENABLED' | 'DISABLED' | 'DESTROYED'): void
  /** Lets the account no longer use any key. */
  deny(isDenied: boolean): void
  /** Takes an access token that a metadata service has given. */
  accept(token: string): void
  /** Accepts it no more. */
  refuse(token: string): void
}

const base64 = z.base64().min(1)
const sum = z.string().regex(/^\d{1,10}$/)
const signRequest = z.union([
  z.strictObject({ digest: z.strictObject({ sha256: base64 }), digestCrc32c: sum }),
  z.strictObject({ data: base64, dataCrc32c: sum }),
])
const bound = { additionalAuthenticatedData: base64, additionalAuthenticatedDataCrc32c: sum }
const encryptRequest = z.strictObject({ plaintext: base64, plaintextCrc32c: sum, ...bound })
const decryptRequest = z.strictObject({ ciphertext: base64, ciphertextCrc32c: sum, ...bound })

/** An error of the service, by its status. */
class Refusal extends Error {}

const statuses: Readonly<Record<string, number>> = {
  INVALID_ARGUMENT: 400,
  FAILED_PRECONDITION: 400,
  UNAUTHENTICATED: 401,
  PERMISSION_DENIED: 403,
  NOT_FOUND: 404,
  RESOURCE_EXHAUSTED: 429,
  UNAVAILABLE: 503,
}

function newChainVersion(level = 'HSM'): Version & { readonly address: `0x${string}` } {
  const [pair, other] = [newChainKey(), newChainKey()]
  return {
    algorithm: 'EC_SIGN_SECP256K1_SHA256',
    level,
    state: 'ENABLED',
    pem: createPublicKey({ key: pair.jwk, format: 'jwk' }).export({ type: 'spki', format: 'pem' }).toString(),
    address: pair.address,
    sign: (data, isDisturbed) => (isDisturbed ? other : pair).sign(data),
  }
}

function newDocumentVersion(): Version {
  const [pair, other] = [generateKeyPairSync('ed25519'), generateKeyPairSync('ed25519')]
  return {
    algorithm: 'EC_SIGN_ED25519',
    level: 'SOFTWARE',
    state: 'ENABLED',
    pem: pair.publicKey.export({ type: 'spki', format: 'pem' }).toString(),
    sign: async (data, isDisturbed) => sign(null, data, (isDisturbed ? other : pair).privateKey),
  }
}

/** By its definition, bit by bit: not the table of the client. */
function crc32c(data: Uint8Array): string {
  let remainder = 0xffffffffn
  for (const byte of data) {
    remainder ^= BigInt(byte)
    for (let bit = 0; bit < 8; bit += 1)
      remainder = (remainder & 1n) === 1n ? (remainder >> 1n) ^ 0x82f63b78n : remainder >> 1n
  }
  return String(remainder ^ 0xffffffffn)
}

export async function startGoogleServer(): Promise<GoogleServer> {
  const account = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const versions = {
    sponsor: newChainVersion(),
    owner: newChainVersion(),
    software: newChainVersion('SOFTWARE'),
    receipts: newDocumentVersion(),
  }
  const signing = new Map<string, Version>(
    Object.entries(versions).map(([name, version]) => [
      `${RING}/cryptoKeys/${name}/cryptoKeyVersions/1`,
      version,
    ]),
  )
  const wrapping = new Map(
    ['wrapping', 'wrapping2'].map((name) => [`${RING}/cryptoKeys/${name}`, randomBytes(32)]),
  )
  let isDenied = false
  const accepted = new Set<string>()

  async function authenticate({ headers }: KmsRequest): Promise<void> {
    const [, token = ''] = /^Bearer (\S+)$/.exec(headers.authorization ?? '') ?? []
    if (accepted.has(token)) return
    const { payload, protectedHeader } = await jwtVerify(token, account.publicKey, {
      algorithms: ['RS256'],
      issuer: EMAIL,
      subject: EMAIL,
      audience: 'https://cloudkms.googleapis.com/',
      requiredClaims: ['iat', 'exp'],
    }).catch(() => {
      throw new Refusal('UNAUTHENTICATED')
    })
    const { iat = 0, exp = 0 } = payload
    const isExpected =
      protectedHeader.kid === KEY_ID &&
      exp - iat <= 3_600 &&
      iat <= Date.now() / 1_000 + 60 &&
      Object.keys(payload).sort().join() === 'aud,exp,iat,iss,sub'
    if (!isExpected) throw new Refusal('UNAUTHENTICATED')
  }

  async function perform({ method, path, body }: KmsRequest, disturbed: Disturbance | null): Promise<object> {
    const [, name = '', action] =
      /^\/v1\/(projects\/[^:]+?)(?:(\/publicKey)|:(?:asymmetricSign|encrypt|decrypt))$/.exec(path) ?? []
    const operation = action === undefined ? path.split(':')[1] : 'publicKey'
    const stated = (data: Uint8Array) => (disturbed === 'wrong-sum' ? '1' : crc32c(data))
    const perhaps = (data: Buffer) => (disturbed === 'corrupt' ? corrupt(data) : data)
    const named = disturbed === 'other-name' ? `${RING}/cryptoKeys/owner/cryptoKeyVersions/1` : name
    if (operation === 'publicKey' || operation === 'asymmetricSign') {
      if (wrapping.has(name.replace(/\/cryptoKeyVersions\/\d+$/, ''))) throw new Refusal('INVALID_ARGUMENT')
      const version = signing.get(name)
      if (version === undefined) throw new Refusal('NOT_FOUND')
      if (version.state !== 'ENABLED') throw new Refusal('FAILED_PRECONDITION')
      const { algorithm, level: protectionLevel, pem } = version
      if (operation === 'publicKey') {
        if (method !== 'GET' || body !== '') throw new Refusal('INVALID_ARGUMENT')
        const pemCrc32c = stated(Buffer.from(pem))
        return { name: named, pem, pemCrc32c, algorithm, protectionLevel }
      }
      const given = parse(signRequest, body)
      const isDigest = 'digest' in given
      if (isDigest !== (algorithm === 'EC_SIGN_SECP256K1_SHA256')) throw new Refusal('INVALID_ARGUMENT')
      const data = Buffer.from(isDigest ? given.digest.sha256 : given.data, 'base64')
      checkSum(data, isDigest ? given.digestCrc32c : given.dataCrc32c)
      if (isDigest && data.length !== 32) throw new Refusal('INVALID_ARGUMENT')
      const signature = await version.sign(data, disturbed === 'other-key')
      return {
        name: named,
        signature: perhaps(signature).toString('base64'),
        signatureCrc32c: stated(signature),
        [isDigest ? 'verifiedDigestCrc32c' : 'verifiedDataCrc32c']: true,
        protectionLevel,
      }
    }
    const secret = wrapping.get(name)
    if (signing.has(`${name}/cryptoKeyVersions/1`)) throw new Refusal('INVALID_ARGUMENT')
    if (secret === undefined) throw new Refusal('NOT_FOUND')
    if (method !== 'POST') throw new Refusal('INVALID_ARGUMENT')
    if (operation === 'encrypt') {
      const given = parse(encryptRequest, body)
      const plain = checkSum(Buffer.from(given.plaintext, 'base64'), given.plaintextCrc32c)
      const aad = checkSum(
        Buffer.from(given.additionalAuthenticatedData, 'base64'),
        given.additionalAuthenticatedDataCrc32c,
      )
      const iv = randomBytes(12)
      const cipher = createCipheriv('aes-256-gcm', secret, iv).setAAD(aad)
      const sealed = Buffer.concat([iv, cipher.update(plain), cipher.final(), cipher.getAuthTag()])
      return {
        name: disturbed === 'other-name' ? named : `${name}/cryptoKeyVersions/1`,
        ciphertext: perhaps(sealed).toString('base64'),
        ciphertextCrc32c: stated(sealed),
        verifiedPlaintextCrc32c: true,
        verifiedAdditionalAuthenticatedDataCrc32c: true,
        protectionLevel: 'HSM',
      }
    }
    const given = parse(decryptRequest, body)
    const sealed = checkSum(Buffer.from(given.ciphertext, 'base64'), given.ciphertextCrc32c)
    const aad = checkSum(
      Buffer.from(given.additionalAuthenticatedData, 'base64'),
      given.additionalAuthenticatedDataCrc32c,
    )
    try {
      const decipher = createDecipheriv('aes-256-gcm', secret, sealed.subarray(0, 12))
        .setAAD(aad)
        .setAuthTag(sealed.subarray(-16))
      const plain = Buffer.concat([decipher.update(sealed.subarray(12, -16)), decipher.final()])
      const plaintext = perhaps(plain).toString('base64')
      return { plaintext, plaintextCrc32c: stated(plain), usedPrimary: true, protectionLevel: 'HSM' }
    } catch {
      throw new Refusal('INVALID_ARGUMENT')
    }
  }

  async function answer(request: KmsRequest, disturbed: Disturbance | null): Promise<KmsAnswer> {
    try {
      if (disturbed === 'throttle') throw new Refusal('RESOURCE_EXHAUSTED')
      if (disturbed === 'fail') throw new Refusal('UNAVAILABLE')
      await authenticate(request)
      if (isDenied) throw new Refusal('PERMISSION_DENIED')
      return { status: 200, body: await perform(request, disturbed) }
    } catch (error) {
      if (!(error instanceof Refusal)) throw error
      const status = statuses[error.message] ?? 500
      return {
        status,
        body: { error: { code: status, message: `${EMAIL} is not said`, status: error.message } },
      }
    }
  }

  const server = await startKmsServer(answer)
  const key = (name: string) => `gcp-kms://${RING}/cryptoKeys/${name}`
  const first = (name: string) => `${key(name)}/cryptoKeyVersions/1`
  return {
    ...server,
    env: {
      GCP_KMS_ENDPOINT: server.url,
      GCP_KMS_CREDENTIALS: JSON.stringify({
        type: 'service_account',
        project_id: 'project-1',
        private_key_id: KEY_ID,
        private_key: account.privateKey.export({ type: 'pkcs8', format: 'pem' }),
        client_email: EMAIL,
        client_id: '1',
        token_uri: 'https://oauth2.googleapis.com/token',
      }),
    },
    at: {
      sponsor: first('sponsor'),
      owner: first('owner'),
      receipts: first('receipts'),
      software: first('software'),
      wrapping: key('wrapping'),
      wrapping2: key('wrapping2'),
    },
    address: (name) => versions[name].address,
    setState(name, state) {
      versions[name].state = state
    },
    deny(next) {
      isDenied = next
    },
    accept(token) {
      accepted.add(token)
    },
    refuse(token) {
      accepted.delete(token)
    },
  }
}

function parse<Schema extends z.ZodType>(schema: Schema, body: string): z.output<Schema> {
  const { success, data } = schema.safeParse(JSON.parse(body))
  if (!success) throw new Refusal('INVALID_ARGUMENT')
  return data
}

function checkSum(data: Buffer, given: string): Buffer {
  if (crc32c(data) !== given) throw new Refusal('INVALID_ARGUMENT')
  return data
}
