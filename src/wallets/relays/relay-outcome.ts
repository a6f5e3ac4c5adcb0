/** How a relay ends: what the token says became of what was signed, written down once. */
import type { Clock } from '../../base/clock.ts'
import type { NewId } from '../../base/ids.ts'
import type { Log } from '../../base/log.ts'
import { type ExpectedPayment, isPaidBy, paymentOutcome } from '../../evidence/payment-outcome.ts'
import { isMarked, transactionMark } from '../../evidence/transaction-mark.ts'
import { Failure } from '../../failures/failure.ts'
import { external } from '../../ledger/accounts.ts'
import type { Chain, Hex } from '../../providers/chain.ts'
import { releaseSpend } from '../../spending/release.ts'
import { settleSpend } from '../../spending/settle.ts'
import type { Database } from '../../storage/database.ts'
import { bookDeposit } from '../open-wallet.ts'
import { findWalletOwner } from '../store.ts'
import { type Relay, updateRelay } from './relay-store.ts'
import type { SignedPayment } from './signed-payment.ts'
import {
  isUsed,
  judgePayment,
  type Rejection,
  refusedByToken,
  rejections,
  sponsorAllowance,
} from './token-authorization.ts'

/** What relaying needs. */
export interface RelayDependencies {
  readonly database: Database
  readonly chain: Chain
  readonly newId: NewId
  readonly clock: Clock
  readonly log: Log
  readonly settings: { readonly dataKey: Uint8Array }
}

/** How a relay ended. @property rejection why the token does not take it; null where it failed otherwise. */
export type RelayOutcome =
  | { readonly state: 'confirmed'; readonly transactionHash: Hex }
  | { readonly state: 'failed'; readonly failure: string; readonly rejection: Rejection | null }

/** Reasons that stay: what is refused for one of them is never executed, whatever was broadcast before. */
const lasting: readonly (Rejection | null)[] = ['expired', 'signature', 'domain']

/** How far back a permit's transaction is searched for whose hash was lost: more than an hour on every chain. */
const SEARCHED_BLOCKS = 2_000n

/** The mark of the transaction that carries a relay. */
export function relayMark({ settings }: Pick<RelayDependencies, 'settings'>, { id }: Pick<Relay, 'id'>): Hex {
  return transactionMark(settings.dataKey, id)
}

/** The transfer that a relay is to make. */
export function expectedOf({ tokens }: Pick<Chain, 'tokens'>, payment: SignedPayment): ExpectedPayment {
  const { token, payer: from, destination: to, units } = payment
  const nonce = payment.kind === 'authorization' ? (`0x${payment.nonce.slice(2)}` as const) : null
  return { token: tokens[token], from, to, units, nonce }
}

/**
 * The end of a relay by the chain's evidence; undefined where it can still be sent. Only its own transaction counts: what
 * the payer sends under the same nonce, or takes back, is none of it.
 */
export async function relayOutcome(
  relaying: Pick<RelayDependencies, 'chain' | 'settings'>,
  relay: Pick<Relay, 'id' | 'payment'>,
): Promise<RelayOutcome | undefined> {
  const { chain } = relaying
  const { payment } = relay
  const { nonce, ...transfer } = expectedOf(chain, payment)
  const mark = relayMark(relaying, relay)
  if (nonce === null) return endOfPermit(chain, payment, { ...transfer, nonce, mark })
  const outcome = await paymentOutcome(chain, { ...transfer, nonce }, { mark })
  if (outcome.status === 'unused') return undefined
  if (outcome.status === 'paid') return { state: 'confirmed', transactionHash: outcome.transactionHash }
  return rejectedEnd('nonce_used', 'Its nonce was cancelled, or used by another transaction.')
}

/** A permit's number moves before its money, and what it allows is gone once it was taken, or taken back. */
async function endOfPermit(
  chain: Chain,
  payment: SignedPayment,
  { mark, ...expected }: ExpectedPayment & { readonly mark: Hex },
): Promise<RelayOutcome | undefined> {
  const { token, payer, units } = payment
  if (!(await isUsed(chain, payment)) || (await sponsorAllowance(chain, token, payer)) >= units)
    return undefined
  const head = await chain.blockNumber()
  const fromBlock = head > SEARCHED_BLOCKS ? head - SEARCHED_BLOCKS : 0n
  for (const { transactionHash } of await chain.findTransfers({
    fromBlock,
    toBlock: head,
    to: expected.to,
  })) {
    const transaction = await chain.transaction(transactionHash)
    if (transaction !== undefined && isMarked(transaction, mark) && isPaidBy(transaction, expected))
      return { state: 'confirmed', transactionHash }
  }
  const failure = 'The allowance of its permit is gone, and no transaction of this relay has taken it.'
  return { state: 'failed', failure, rejection: null }
}

/**
 * How a payment ended of which nothing can be on its way: the chain refused it before it was broadcast, or executed it in
 * vain. Undefined where a permit is with the token and its money can still be taken.
 * @param words the chain's own.
 * @throws where the chain does not answer.
 */
export async function rejectedRelayOutcome(
  relaying: Pick<RelayDependencies, 'chain' | 'clock' | 'settings'>,
  relay: Pick<Relay, 'id' | 'payment'>,
  words: string,
): Promise<RelayOutcome | undefined> {
  const { chain, clock } = relaying
  const { payment } = relay
  const end = await relayOutcome(relaying, relay)
  if (end !== undefined) return end
  if (payment.kind === 'permit' && (await isUsed(chain, payment))) {
    const balance = await chain.balanceOf(payment.token, payment.payer)
    return balance >= payment.units
      ? undefined
      : rejectedEnd('balance', 'The payer no longer has the amount.')
  }
  return (await judgedEnd({ chain, clock }, payment)) ?? endBy(refusedByToken(payment, words, clock()))
}

/** How a payment ends that no transaction can ever carry out any more; undefined where one can, or where that may change. */
export async function finalRelayOutcome(
  relaying: Pick<RelayDependencies, 'chain' | 'clock'>,
  payment: SignedPayment,
): Promise<RelayOutcome | undefined> {
  const end = await judgedEnd(relaying, payment)
  return end?.state === 'failed' && lasting.includes(end.rejection) ? end : undefined
}

async function judgedEnd(
  { chain, clock }: Pick<RelayDependencies, 'chain' | 'clock'>,
  payment: SignedPayment,
): Promise<RelayOutcome | undefined> {
  try {
    await judgePayment(chain, payment, clock())
    return undefined
  } catch (error) {
    if (error instanceof Failure && error.code === 'authorization_rejected') return endBy(error)
    throw error
  }
}

function endBy({ message, members }: Failure): RelayOutcome {
  return rejectedEnd(rejections.find((one) => one === members.reason) ?? 'refused', message)
}

function rejectedEnd(rejection: Rejection, failure: string): RelayOutcome {
  return { state: 'failed', failure, rejection }
}

/** Ends a relay, its share of the budget, and books what arrived at a wallet of ours, in one transaction and once. */
export async function finishRelay(
  relaying: RelayDependencies,
  relay: Relay,
  end: RelayOutcome,
): Promise<void> {
  const { database, chain, clock } = relaying
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
      { ...relaying, database: connection },
      { accountId: receiver, funds, reference: id, at },
    )
  })
}
