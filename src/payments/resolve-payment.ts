/**
 * What became of a payment whose settlement was not seen: the chain knows. A spent authorization was paid, because it can
 * pay nobody but us; one that is unspent after its time can never be. Whatever cannot be read stays pending.
 * @see https://eips.ethereum.org/EIPS/eip-3009
 */
import type { Clock } from '../clock.ts'
import type { Chain } from '../providers/chain.ts'
import type { Connection } from '../storage/database.ts'
import { receiptOf } from './receipt.ts'
import { failPayment, type StoredPayment, settlePayment } from './store.ts'

/** A block's time may lag behind ours: so long after its end an authorization is not given up yet. */
const BLOCK_LAG_MS = 120_000

/** The authorization was not used in its time. */
const EXPIRED = 'authorization_expired_unused'

const abi = [
  {
    type: 'function',
    name: 'authorizationState',
    stateMutability: 'view',
    inputs: [
      { name: 'authorizer', type: 'address' },
      { name: 'nonce', type: 'bytes32' },
    ],
    outputs: [{ name: '', type: 'bool' }],
  },
] as const

/** What resolving needs. */
export interface Resolving {
  readonly database: Connection
  readonly chain: Pick<Chain, 'signer'>
  readonly clock: Clock
}

/** What is known now. */
export type Resolution = 'settled' | 'failed' | 'pending'

/** Asks the chain about one payment and writes down what it says. @throws where the chain or the database cannot be asked. */
export async function resolvePayment(
  { database, chain, clock }: Resolving,
  payment: StoredPayment,
): Promise<Resolution> {
  const { id, transaction_hash: transaction } = payment
  if (await isSpent(chain, payment)) {
    await settlePayment(database, { id, transaction, receipt: receiptOf(payment, transaction), at: clock() })
    return 'settled'
  }
  if (clock().getTime() < payment.valid_before.getTime() + BLOCK_LAG_MS) return 'pending'
  await failPayment(database, { id, failure: EXPIRED, at: clock() })
  return 'failed'
}

/** Whether the token has executed the authorization. */
export async function isSpent(
  { signer }: Pick<Chain, 'signer'>,
  { token, payer, nonce }: Pick<StoredPayment, 'token' | 'payer' | 'nonce'>,
): Promise<boolean> {
  const call = { address: hex(token), abi, functionName: 'authorizationState', args: [payer, nonce] }
  return (await signer.readContract(call)) === true
}

function hex(text: string): `0x${string}` {
  return `0x${text.slice(2)}`
}
