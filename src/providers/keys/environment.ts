/** Keys that are the value of their variable: they are in the memory of the process. */
import { createPrivateKey, createPublicKey, sign } from 'node:crypto'
import type { Hex } from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import type { ChainKey, DocumentKey } from './port.ts'

/** Of a variable, or of the file that one names. */
const ENVIRONMENT = 'environment'

export function createEnvironmentKey(privateKey: Hex): ChainKey {
  const account = privateKeyToAccount(privateKey)
  return { address: account.address, place: ENVIRONMENT, sign: (hash) => account.sign({ hash }) }
}

/** @param pem PKCS #8 of an Ed25519 key. @throws Error for another. */
export function createEnvironmentDocumentKey(pem: string): DocumentKey {
  const key = createPrivateKey(pem)
  if (key.asymmetricKeyType !== 'ed25519') throw new Error('it is no Ed25519 key')
  const { x = '' } = createPublicKey(key).export({ format: 'jwk' })
  return {
    publicKey: Buffer.from(x, 'base64url'),
    place: ENVIRONMENT,
    sign: async (data) => sign(null, data, key),
  }
}
