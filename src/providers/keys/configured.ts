/** Keys by their variables: the value itself, from the environment or a file, or a reference to a token. */
import {
  describeKeyReference,
  isKeyReference,
  type KeyReference,
  parseKeyReference,
} from '../../core/config/key-reference.ts'
import type { Config } from '../../core/config/read-config.ts'
import { Failure } from '../../core/failures/failure.ts'
import { createChainKey } from './chain-key.ts'
import { createEnvironmentDocumentKey, createEnvironmentKey } from './environment.ts'
import type { ChainKey, DocumentKey, KeyStore, Keys, StoredKey } from './port.ts'

const MIN_SECRET = 32

/** Opens nothing yet; a token is connected to when its first key is opened. */
export function createConfiguredKeys({ pkcs11 }: Pick<Config, 'pkcs11'>): Keys {
  let store: Promise<KeyStore<KeyReference>> | undefined
  const openStore = () => {
    // Loaded only where a token is used: its package is compiled at installation and may be absent.
    store ??= import('./pkcs11.ts').then(({ createPkcs11Store }) => createPkcs11Store(pkcs11))
    return store
  }
  /** Opens a key, and says which when it cannot be used. */
  async function openStored(
    name: string,
    text: string,
    algorithm: 'secp256k1' | 'Ed25519',
  ): Promise<StoredKey> {
    const { reference, place } = locate(name, text)
    const opened = await openStore()
      .then((tokens) => tokens.openKey(reference, algorithm))
      .catch((cause: unknown) => {
        throw describeFault(name, place, cause)
      })
    return {
      publicKey: opened.publicKey,
      sign: (data) =>
        opened.sign(data).catch((cause: unknown) => {
          throw new Failure(
            'provider_unavailable',
            `${name} cannot sign at the moment; nothing was signed.`,
            { retryAfter: 5 },
            { cause: describeFault(name, place, cause) },
          )
        }),
    }
  }
  return {
    async openChainKey(name, text): Promise<ChainKey> {
      if (isKeyReference(text)) {
        const { place } = locate(name, text)
        const stored = await openStored(name, text, 'secp256k1')
        return createChainKey(stored, place)
      }
      return createEnvironmentKey(`0x${text.slice(2)}`)
    },
    async openDocumentKey(name, text): Promise<DocumentKey> {
      if (isKeyReference(text)) {
        const { place } = locate(name, text)
        return { ...(await openStored(name, text, 'Ed25519')), place }
      }
      return createEnvironmentDocumentKey(text)
    },
    async openSecret(name, text) {
      if (!isKeyReference(text)) return text
      const { reference, place } = locate(name, text)
      if (reference.wrapped === null)
        throw new Error(
          `${name}: the reference has no wrapped secret. Make it with: bursar keys wrap ${name} --with pkcs11:…`,
        )
      const wrapped = Buffer.from(reference.wrapped, 'base64url')
      const secret = await openStore()
        .then((tokens) => tokens.decrypt(reference, wrapped))
        .catch((cause: unknown) => {
          throw describeFault(name, place, cause)
        })
      if (secret.length < MIN_SECRET)
        throw new Error(`${name}: the wrapped secret has less than 32 characters.`)
      return Buffer.from(secret).toString('utf8')
    },
    async wrap(text, secret) {
      const { reference, place } = locate('--with', text)
      const sealed = await openStore()
        .then((tokens) => tokens.encrypt(reference, Buffer.from(secret)))
        .catch((cause: unknown) => {
          throw describeFault('--with', place, cause)
        })
      return `${text.split('?')[0]}?wrapped=${Buffer.from(sealed).toString('base64url')}`
    },
    async close() {
      await store?.then((opened) => opened.close()).catch(() => undefined)
    },
  }
}

function locate(name: string, text: string): { reference: KeyReference; place: string } {
  try {
    const reference = parseKeyReference(text)
    return { reference, place: describeKeyReference(reference) }
  } catch (cause) {
    throw new Error(`${name} ${cause instanceof Error ? cause.message : String(cause)}.`, { cause })
  }
}

function describeFault(name: string, place: string, cause: unknown): Error {
  const why = cause instanceof Error ? cause.message : String(cause)
  return new Error(`${name}: the ${place} cannot be used: ${why}.`, { cause })
}
