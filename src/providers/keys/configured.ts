/** Keys by their variables: the value itself, from the environment or a file, or a reference to a token or a cloud. */
import { createPublicKey, verify } from 'node:crypto'
import { parsePrivateKey } from '../../core/base/rotating-key.ts'
import {
  describeKeyReference,
  isKeyReference,
  type KeyReference,
  parseKeyReference,
} from '../../core/config/key-reference.ts'
import type { KeyPlaces } from '../../core/config/keys.ts'
import { Failure } from '../../core/failures/failure.ts'
import { createChainKey } from './chain-key.ts'
import { createEnvironmentDocumentKey, createEnvironmentKey } from './environment.ts'
import type { ChainKey, DocumentKey, KeyAlgorithm, KeyStore, Keys, StoredKey } from './port.ts'

const MIN_SECRET = 32

/** A key of a store, by its reference. */
interface StoredPlace {
  readonly reference: KeyReference
  /** For people. */
  readonly place: string
  openKey(algorithm: KeyAlgorithm): Promise<StoredKey>
  encrypt(secret: Uint8Array): Promise<Uint8Array>
  decrypt(wrapped: Uint8Array): Promise<Uint8Array>
}

/** Opens nothing yet; a store is connected to when its first key is opened. */
export function createConfiguredKeys({ pkcs11, awsKms, gcpKms }: KeyPlaces): Keys {
  const opened: Promise<Pick<KeyStore<never>, 'close'>>[] = []
  const openOnce = <Reference>(load: () => Promise<KeyStore<Reference>>) => {
    let store: Promise<KeyStore<Reference>> | undefined
    return () => {
      if (store !== undefined) return store
      store = load()
      opened.push(store)
      return store
    }
  }
  // Loaded only where they are used: the package of tokens is compiled at installation and may be absent.
  const openTokens = openOnce(async () => (await import('./pkcs11.ts')).createPkcs11Store(pkcs11))
  const openAws = openOnce(async () => (await import('./aws-kms.ts')).createAwsStore(awsKms))
  const openGoogle = openOnce(async () => (await import('./google-kms.ts')).createGoogleStore(gcpKms))

  /** @param name the variable, for messages. */
  function locate(name: string, text: string): StoredPlace {
    const reference = parseReference(name, text)
    switch (reference.kind) {
      case 'pkcs11':
        return atStore(name, reference, openTokens)
      case 'aws-kms':
        return atStore(name, reference, openAws)
      case 'gcp-kms':
        return atStore(name, reference, openGoogle)
    }
  }
  async function openWrapped(name: string, text: string): Promise<string> {
    const { reference, place, decrypt } = locate(name, text)
    if (reference.wrapped === null)
      throw new Error(
        `${name}: the reference has no wrapped secret. Make it with: bursar keys wrap ${name} --with ${text}`,
      )
    const secret = await decrypt(Buffer.from(reference.wrapped, 'base64url'))
    if (secret.length < MIN_SECRET)
      throw new Error(`${name}: what the ${place} has wrapped has less than 32 characters.`)
    return Buffer.from(secret).toString('utf8')
  }
  return {
    async openChainKey(name, text): Promise<ChainKey> {
      if (!isKeyReference(text)) return createEnvironmentKey(`0x${text.slice(2)}`)
      const { reference, place, openKey } = locate(name, text)
      if (reference.wrapped !== null)
        throw new Error(`${name}: keys of chains sign where they are, and cannot be wrapped.`)
      const key = createChainKey(await openKey('secp256k1'), place)
      if (reference.address !== null && reference.address.toLowerCase() !== key.address.toLowerCase())
        throw new Error(`${name}: the ${place} has the address ${key.address}, not ${reference.address}.`)
      return { ...key, sign: (digest) => signing(name, place, key.sign(digest)) }
    },
    async openDocumentKey(name, text): Promise<DocumentKey> {
      if (!isKeyReference(text)) return createEnvironmentDocumentKey(text)
      const { reference, place, openKey } = locate(name, text)
      if (reference.wrapped !== null) {
        const pem = await openWrapped(name, text)
        return { ...naming(name, () => createEnvironmentDocumentKey(pem)), place: `wrapped by ${place}` }
      }
      const { publicKey, sign } = await openKey('Ed25519')
      const isGenuine = createVerifier(publicKey)
      const signGenuinely = async (data: Uint8Array) => {
        const signature = await sign(data)
        if (!isGenuine(data, signature)) throw new Error('it signed other data, or with another key')
        return signature
      }
      return { publicKey, place, sign: (data) => signing(name, place, signGenuinely(data)) }
    },
    async openPrivateKey(name, text, curve) {
      if (!isKeyReference(text)) return parsePrivateKey(curve, text)
      const pem = await openWrapped(name, text)
      return naming(name, () => parsePrivateKey(curve, pem))
    },
    openSecret: async (name, text) => (isKeyReference(text) ? openWrapped(name, text) : text),
    async wrap(text, secret) {
      const { encrypt, decrypt, place } = locate('--with', text)
      const wrapped = await encrypt(Buffer.from(secret))
      // The secret may be kept nowhere else: what does not open again is worth nothing.
      if (!Buffer.from(secret).equals(await decrypt(wrapped)))
        throw new Error(`--with: the ${place} does not open what it has wrapped.`)
      return `${text.split('?')[0]}?wrapped=${Buffer.from(wrapped).toString('base64url')}`
    },
    async close() {
      for (const store of opened) await store.then(({ close }) => close()).catch(() => undefined)
    },
  }
}

/** @returns what can be done there; its errors say which key cannot be used, and why. */
function atStore<Reference extends KeyReference>(
  name: string,
  reference: Reference,
  open: () => Promise<KeyStore<Reference>>,
): StoredPlace {
  const place = describeKeyReference(reference)
  const use = async <Result>(work: (store: KeyStore<Reference>) => Promise<Result>) => {
    try {
      return await work(await open())
    } catch (cause) {
      throw describeFault(name, place, cause)
    }
  }
  return {
    reference,
    place,
    openKey: (algorithm) => use((store) => store.openKey(reference, algorithm)),
    encrypt: (secret) => use((store) => store.encrypt(reference, secret)),
    decrypt: (wrapped) => use((store) => store.decrypt(reference, wrapped)),
  }
}

/** @throws Failure `provider_unavailable` where a signature cannot be had, or is not of this key: it is used nowhere. */
async function signing<Signature>(name: string, place: string, work: Promise<Signature>): Promise<Signature> {
  try {
    return await work
  } catch (cause) {
    throw new Failure(
      'provider_unavailable',
      `${name} cannot sign at the moment; nothing was signed.`,
      { retryAfter: 5 },
      { cause: describeFault(name, place, cause) },
    )
  }
}

function createVerifier(publicKey: Uint8Array): (data: Uint8Array, signature: Uint8Array) => boolean {
  const x = Buffer.from(publicKey).toString('base64url')
  const key = createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x }, format: 'jwk' })
  return (data, signature) => verify(null, data, key, signature)
}

/** Says which variable has a key of another kind. */
function naming<Key>(name: string, parse: () => Key): Key {
  try {
    return parse()
  } catch (error) {
    throw new Error(`${name}: what is wrapped ${error instanceof Error ? error.message : String(error)}.`)
  }
}

function parseReference(name: string, text: string): KeyReference {
  try {
    return parseKeyReference(text)
  } catch (cause) {
    throw new Error(`${name} ${cause instanceof Error ? cause.message : String(cause)}.`, { cause })
  }
}

function describeFault(name: string, place: string, cause: unknown): Error {
  const why = cause instanceof Error ? cause.message : String(cause)
  return new Error(`${name}: the ${place} cannot be used: ${why}.`, { cause })
}
