/**
 * What became of a payment whose settlement was not seen: the chain knows. A used authorization was paid, because it can
 * pay nobody but us; one that its payer took back, or that is unspent after its time, can never be. Whatever cannot be read
 * stays pending.
 * @see https://eips.ethereum.org/EIPS/eip-3009
 */
import type { Clock } from '../clock.ts'
import type { AuthorizationOutcome, Chain } from '../providers/chain.ts'
import type { Connection } from '../storage/database.ts'
import { receiptOf } from './receipt.ts'
import { failPayment, type StoredPayment, settlePayment } from './store.ts'

/** A block's time may lag behind ours: so long after its end an authorization is not given up yet. */
const BLOCK_LAG_MS = 120_000

/** The authorization was not used in its time. */
const EXPIRED = 'authorization_expired_unused'

/** The payer took the authorization back. */
const CANCELED = 'authorization_canceled'

/** What resolving needs. */
export interface Resolving {
  readonly database: Connection
  readonly chain: Pick<Chain, 'authorizationOutcome'>
  readonly clock: Clock
}

/** What is known now. */
export type Resolution = 'settled' | 'failed' | 'pending'

/** Asks the chain about one payment and writes down what it says. @throws where the chain or the database cannot be asked. */
export async function resolvePayment(
  { database, chain, clock }: Resolving,
  payment: StoredPayment,
): Promise<Resolution> {
  const { id } = payment
  const outcome = await outcomeOf(chain, payment)
  if (outcome.status === 'used') {
    const transaction = payment.transaction_hash ?? outcome.transactionHash
    await settlePayment(database, { id, transaction, receipt: receiptOf(payment, transaction), at: clock() })
    return 'settled'
  }
  const isOver = clock().getTime() >= payment.valid_before.getTime() + BLOCK_LAG_MS
  if (outcome.status === 'unused' && !isOver) return 'pending'
  await failPayment(database, { id, failure: isOver ? EXPIRED : CANCELED, at: clock() })
  return 'failed'
}

/** Whether the token has executed the authorization, and not its payer taken it back. */
export async function isPaid(
  chain: Pick<Chain, 'authorizationOutcome'>,
  payment: Pick<StoredPayment, 'token' | 'payer' | 'nonce'>,
): Promise<boolean> {
  return (await outcomeOf(chain, payment)).status === 'used'
}

function outcomeOf(
  chain: Pick<Chain, 'authorizationOutcome'>,
  { token, payer, nonce }: Pick<StoredPayment, 'token' | 'payer' | 'nonce'>,
): Promise<AuthorizationOutcome> {
  return chain.authorizationOutcome({ token: hex(token), authorizer: hex(payer), nonce: hex(nonce) })
}

function hex(text: string): `0x${string}` {
  return `0x${text.slice(2)}`
}
