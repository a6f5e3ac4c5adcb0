/** Keys that are the value of their variable: they are in the memory of the process. */
import { createPublicKey, sign } from 'node:crypto'
import type { Hex } from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import { parsePrivateKey } from '../../core/base/rotating-key.ts'
import type { ChainKey, DocumentKey } from './port.ts'

/** Of a variable, or of the file that one names. */
const ENVIRONMENT = 'environment'

export function createEnvironmentKey(privateKey: Hex): ChainKey {
  const account = privateKeyToAccount(privateKey)
  return { address: account.address, place: ENVIRONMENT, sign: (hash) => account.sign({ hash }) }
}

/** @param pem PKCS #8 of an Ed25519 key. @throws Error for another. */
export function createEnvironmentDocumentKey(pem: string): DocumentKey {
  const key = parsePrivateKey('Ed25519', pem)
  const { x = '' } = createPublicKey(key).export({ format: 'jwk' })
  return {
    publicKey: Buffer.from(x, 'base64url'),
    place: ENVIRONMENT,
    sign: async (data) => sign(null, data, key),
  }
}
