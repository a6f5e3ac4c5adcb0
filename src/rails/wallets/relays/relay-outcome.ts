/** Outcome of a relay: reads it from the token's evidence and records it once. */

import { type ExpectedPayment, isPaidBy, paymentOutcome } from '../../../books/evidence/payment-outcome.ts'
import { isMarked, transactionMark } from '../../../books/evidence/transaction-mark.ts'
import { external } from '../../../books/ledger/accounts.ts'
import { releaseSpend } from '../../../books/spending/release.ts'
import { settleSpend } from '../../../books/spending/settle.ts'
import type { Clock } from '../../../core/base/clock.ts'
import type { NewId } from '../../../core/base/ids.ts'
import type { Log } from '../../../core/base/log.ts'
import { Failure } from '../../../core/failures/failure.ts'
import { type Chain, type Hex, tokenAddress } from '../../../providers/chain/port.ts'
import type { Database } from '../../../storage/database.ts'
import { bookDeposit } from '../open-wallet.ts'
import { findWalletOwner } from '../store.ts'
import { type Relay, updateRelay } from './relay-store.ts'
import type { SignedPayment } from './signed-payment.ts'
import {
  explainTokenRefusal,
  isUsed,
  judgePayment,
  type Rejection,
  rejections,
  sponsorAllowance,
} from './token-authorization.ts'

export interface RelayDependencies {
  readonly database: Database
  readonly chain: Chain
  readonly newId: NewId
  readonly clock: Clock
  readonly log: Log
  readonly settings: { readonly dataKey: Uint8Array }
}

/** Outcome of a relay. @property rejection why the token rejects it; null for any other failure. */
export type RelayOutcome =
  | { readonly state: 'confirmed'; readonly transactionHash: Hex }
  | { readonly state: 'failed'; readonly failure: string; readonly rejection: Rejection | null }

/** Permanent reasons: a payment rejected for one of them is never executed, even if it was broadcast before. */
const permanentRejections: readonly (Rejection | null)[] = ['expired', 'signature', 'domain']

/** How far back the transaction of a permit with a lost hash is searched: more than an hour on every chain. */
const SEARCH_BLOCKS = 2_000n

/** Mark of the transaction that carries a relay. */
export function relayMark({ settings }: Pick<RelayDependencies, 'settings'>, { id }: Pick<Relay, 'id'>): Hex {
  return transactionMark(settings.dataKey, id)
}

/** The transfer that a relay must make. */
export function toExpected(chain: Pick<Chain, 'name' | 'tokens'>, payment: SignedPayment): ExpectedPayment {
  const { token, payer: from, destination: to, units } = payment
  const nonce = payment.kind === 'authorization' ? (`0x${payment.nonce.slice(2)}` as const) : null
  return { token: tokenAddress(chain, token), from, to, units, nonce }
}

/**
 * Reads the outcome of a relay from the chain's evidence; undefined while it can still be sent. Only its own
 * transaction counts: other uses or cancellations of the nonce by the payer do not.
 */
export async function relayOutcome(
  dependencies: Pick<RelayDependencies, 'chain' | 'settings'>,
  relay: Pick<Relay, 'id' | 'payment'>,
): Promise<RelayOutcome | undefined> {
  const { chain } = dependencies
  const { payment } = relay
  const { nonce, ...transfer } = toExpected(chain, payment)
  const mark = relayMark(dependencies, relay)
  if (nonce === null) return permitOutcome(chain, payment, { ...transfer, nonce, mark })
  const outcome = await paymentOutcome(chain, { ...transfer, nonce }, { mark })
  if (outcome.status === 'unused') return undefined
  if (outcome.status === 'paid') return { state: 'confirmed', transactionHash: outcome.transactionHash }
  return rejectedOutcome('nonce_used', 'The nonce was cancelled, or used by another transaction.')
}

/** A permit's nonce moves before its money, and its allowance is zero after it was used or revoked. */
async function permitOutcome(
  chain: Chain,
  payment: SignedPayment,
  { mark, ...expected }: ExpectedPayment & { readonly mark: Hex },
): Promise<RelayOutcome | undefined> {
  const { token, payer, units } = payment
  if (!(await isUsed(chain, payment)) || (await sponsorAllowance(chain, token, payer)) >= units)
    return undefined
  const head = await chain.blockNumber()
  const fromBlock = head > SEARCH_BLOCKS ? head - SEARCH_BLOCKS : 0n
  for (const { transactionHash } of await chain.findTransfers({
    fromBlock,
    toBlock: head,
    to: expected.to,
  })) {
    const transaction = await chain.transaction(transactionHash)
    if (transaction !== undefined && isMarked(transaction, mark) && isPaidBy(transaction, expected))
      return { state: 'confirmed', transactionHash }
  }
  const failure = 'The allowance of the permit was used or revoked, but not by a transaction of this relay.'
  return { state: 'failed', failure, rejection: null }
}

/**
 * Outcome of a payment that cannot be in flight: the chain rejected it before the broadcast, or executed it without
 * effect. Undefined when the permit was executed and its money can still be collected.
 * @param words error message of the chain.
 * @throws when the chain does not answer.
 */
export async function rejectedRelayOutcome(
  dependencies: Pick<RelayDependencies, 'chain' | 'clock' | 'settings'>,
  relay: Pick<Relay, 'id' | 'payment'>,
  words: string,
): Promise<RelayOutcome | undefined> {
  const { chain, clock } = dependencies
  const { payment } = relay
  const end = await relayOutcome(dependencies, relay)
  if (end !== undefined) return end
  if (payment.kind === 'permit' && (await isUsed(chain, payment))) {
    const balance = await chain.readBalance(payment.token, payment.payer)
    return balance >= payment.units
      ? undefined
      : rejectedOutcome('balance', 'The payer no longer has the amount.')
  }
  return (
    (await judgedOutcome({ chain, clock }, payment)) ??
    outcomeOfFailure(explainTokenRefusal(payment, words, clock()))
  )
}

/** Outcome of a payment that no transaction can ever carry out; undefined when one can, or might later. */
export async function finalRelayOutcome(
  dependencies: Pick<RelayDependencies, 'chain' | 'clock'>,
  payment: SignedPayment,
): Promise<RelayOutcome | undefined> {
  const end = await judgedOutcome(dependencies, payment)
  return end?.state === 'failed' && permanentRejections.includes(end.rejection) ? end : undefined
}

async function judgedOutcome(
  { chain, clock }: Pick<RelayDependencies, 'chain' | 'clock'>,
  payment: SignedPayment,
): Promise<RelayOutcome | undefined> {
  try {
    await judgePayment(chain, payment, clock())
    return undefined
  } catch (error) {
    if (error instanceof Failure && error.code === 'authorization_rejected') return outcomeOfFailure(error)
    throw error
  }
}

function outcomeOfFailure({ message, members }: Failure): RelayOutcome {
  return rejectedOutcome(rejections.find((one) => one === members.reason) ?? 'refused', message)
}

function rejectedOutcome(rejection: Rejection, failure: string): RelayOutcome {
  return { state: 'failed', failure, rejection }
}

/**
 * Completes a relay in one transaction and once: resolves its share of the budget, and books a payment to one of our
 * wallets.
 */
export async function finishRelay(
  dependencies: RelayDependencies,
  relay: Relay,
  end: RelayOutcome,
): Promise<void> {
  const { database, chain, clock } = dependencies
  const at = clock()
  const { id, decisionId, payment } = relay
  const { token: asset, units, destination } = payment
  const receiver = end.state === 'confirmed' ? await findWalletOwner(database, destination) : undefined
  await database.transaction(async (connection) => {
    const { state } = end
    const row =
      state === 'failed'
        ? { state, failure: end.failure, rejection: end.rejection }
        : { state, transactionHash: end.transactionHash }
    if (!(await updateRelay(connection, id, row, at))) return
    if (state === 'failed') {
      await releaseSpend(connection, { decisionId, at })
      return
    }
    await settleSpend(connection, { decisionId, destination: external(chain.name), at })
    if (receiver === undefined) return
    const funds = [{ asset, units }]
    await bookDeposit(
      { ...dependencies, database: connection },
      { accountId: receiver, funds, reference: id, at },
    )
  })
}
