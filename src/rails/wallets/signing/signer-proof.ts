/**
 * Proof of possession for EVM key registration: the key's EIP-712 signature of a text that names account and wallet.
 * The nonce is not stored but derived from the account, the address and the five-minute period of the request.
 */
import { createHmac } from 'node:crypto'
import { getAddress, hashTypedData, recoverAddress } from 'viem'
import type { Address, Chain, Hex, TypedData } from '../../../providers/chain/port.ts'
import { lowerCase } from '../store.ts'

const PERIOD_MS = 5 * 60 * 1000

const types = {
  OwnerKey: [
    { name: 'statement', type: 'string' },
    { name: 'account', type: 'string' },
    { name: 'wallet', type: 'address' },
    { name: 'key', type: 'address' },
    { name: 'nonce', type: 'bytes32' },
  ],
} as const

const statement = 'I hold this key, and it may sign transfers from this wallet.'

/** A key registration. @property secret secret of the deployment. */
export interface SignerRegistration {
  readonly secret: Uint8Array
  readonly chain: Pick<Chain, 'id'>
  readonly accountId: string
  readonly wallet: Address
  readonly address: Address
  readonly at: Date
}

/**
 * Builds the text a key signs to be registered.
 * @property expiresAt end of the signature's validity, in 5 to 10 minutes.
 */
export function signerChallenge(registration: SignerRegistration): { typedData: TypedData; expiresAt: Date } {
  const period = countPeriods(registration.at)
  const { domain, message } = buildTypedData(registration, period)
  return {
    typedData: { domain, types, primaryType: 'OwnerKey', message },
    expiresAt: new Date((period + 2) * PERIOD_MS),
  }
}

/** Verifies the key's signature over a challenge of this or the previous period. */
export async function verifySignerProof(registration: SignerRegistration, signature: Hex): Promise<boolean> {
  const period = countPeriods(registration.at)
  for (const candidate of [period, period - 1]) {
    const { domain, message } = buildTypedData(registration, candidate)
    const hash = hashTypedData({ domain, types, primaryType: 'OwnerKey', message })
    const signer = await recoverAddress({ hash, signature }).catch(() => undefined)
    if (signer !== undefined && lowerCase(signer) === lowerCase(registration.address)) return true
  }
  return false
}

function countPeriods(at: Date): number {
  return Math.floor(at.getTime() / PERIOD_MS)
}

function buildTypedData({ secret, chain, accountId, wallet, address }: SignerRegistration, period: number) {
  const text = `owner-key\n${accountId}\n${lowerCase(address)}\n${period}`
  const nonce: Hex = `0x${createHmac('sha256', secret).update(text).digest('hex')}`
  return {
    domain: { name: 'Bursar', version: '1', chainId: chain.id },
    message: {
      statement,
      account: accountId,
      wallet: getAddress(wallet),
      key: getAddress(address),
      nonce,
    },
  }
}
