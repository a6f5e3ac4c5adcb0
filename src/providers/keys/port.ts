/**
 * Keys: everything that signs for this deployment, and what encrypts its secrets, by name and wherever they are. A key that cannot be
 * used is an error; no other key ever takes its place.
 */
import type { KeyObject } from 'node:crypto'
import type { KeyCurve } from '../../core/base/rotating-key.ts'

/** A key on secp256k1, for chains. @property place for people: never a secret. */
export interface ChainKey {
  /** EIP-55. */
  readonly address: `0x${string}`
  readonly place: string
  /**
   * Signs a digest: 65 bytes, the lower s, v 27 or 28.
   * @throws Failure `provider_unavailable` when the key cannot be used now; nothing was signed.
   */
  sign(digest: `0x${string}`): Promise<`0x${string}`>
}

/** An Ed25519 key, for documents. */
export interface DocumentKey {
  /** 32 bytes. */
  readonly publicKey: Uint8Array
  readonly place: string
  /** @throws Failure as {@link ChainKey.sign}. */
  sign(data: Uint8Array): Promise<Uint8Array>
}

export interface Keys {
  /** @param name the variable, for messages. @param text 0x and 64 hex digits, or a reference. @throws Error with the variable's name. */
  openChainKey(name: string, text: string): Promise<ChainKey>
  /** @param text PEM of an Ed25519 key, or a reference. */
  openDocumentKey(name: string, text: string): Promise<DocumentKey>
  /** A key that signs in this process: PEM, or one that the reference has wrapped. */
  openPrivateKey(name: string, text: string, curve: KeyCurve): Promise<KeyObject>
  /** The secret itself, or the one that a reference has wrapped. */
  openSecret(name: string, text: string): Promise<string>
  /** Encrypts a secret for its variable. @param reference of the AES key. @returns the reference with the wrapped secret. */
  wrap(reference: string, secret: string): Promise<string>
  close(): Promise<void>
}

/** A key in a store. */
export interface StoredKey {
  /** Uncompressed point of 65 bytes, or 32 bytes of Ed25519. */
  readonly publicKey: Uint8Array
  /** 64 bytes: r and s of the digest, or an Ed25519 signature of the data. */
  sign(data: Uint8Array): Promise<Uint8Array>
}

export type KeyAlgorithm = 'secp256k1' | 'Ed25519'

/** One kind of place. All methods throw an Error that says what is wrong there, without a secret. */
export interface KeyStore<Reference> {
  openKey(reference: Reference, algorithm: KeyAlgorithm): Promise<StoredKey>
  encrypt(reference: Reference, secret: Uint8Array): Promise<Uint8Array>
  decrypt(reference: Reference, wrapped: Uint8Array): Promise<Uint8Array>
  close(): Promise<void>
}
