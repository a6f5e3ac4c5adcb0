/**
 * One relay: row → broadcast → end. What was signed is executed at most once by the token itself, whoever sends it how
 * often. The money is not ours: nothing is held, and only what arrives at a wallet of ours is booked.
 */
import { isPaidBy } from '../../evidence/payment-outcome.ts'
import { Failure } from '../../failures/failure.ts'
import { type Chain, type Hex, isRefusedCall } from '../../providers/chain.ts'
import { releaseSpend } from '../../spending/release.ts'
import { collectCall, signedCall } from './payment-call.ts'
import {
  expectedOf,
  finalRelayOutcome,
  finishRelay,
  type RelayDependencies,
  type RelayOutcome,
  rejectedRelayOutcome,
  relayMark,
  relayOutcome,
} from './relay-outcome.ts'
import {
  findRelayOfDecision,
  insertRejectedRelay,
  insertRelay,
  isReleased,
  type NewRelay,
  type Relay,
  updateRelay,
} from './relay-store.ts'
import type { SignedPayment } from './signed-payment.ts'
import { isUsed, rejected, rejectedLate } from './token-authorization.ts'

/** How long a caller waits for the chain before it is told `settlement_pending`. */
const WAIT_MS = 3000

/** After so long a relay that the chain never took is given up. What was signed may then be sent anew. */
const GIVEN_UP_MS = 10 * 60_000

/** A relay that the chain has taken. */
export interface SubmittedRelay {
  readonly transferId: string
  readonly transactionHash: Hex
  readonly status: 'confirmed' | 'settlement_pending'
}

/**
 * Carries a payment to the chain, under an allowed decision.
 * @throws Failure `authorization_rejected` where it is carried already or the chain would not take it, `settlement_pending`
 * where that is not known.
 */
export async function relayPayment(
  relaying: RelayDependencies,
  order: { accountId: string; decisionId: string; payment: SignedPayment; at: Date },
): Promise<SubmittedRelay> {
  const { database, chain, newId, clock } = relaying
  const { at, ...rest } = order
  const row = { ...rest, id: newId('tx', at), chain: chain.name, createdAt: at }
  if (!(await insertRelay(database, row))) throw await turnAway(relaying, row)
  const relay: Relay = { ...row, state: 'reserved', transactionHash: null, failure: null, rejection: null }
  const sent = await broadcast(relaying, relay)
  if (typeof sent !== 'string') return sent
  const outcome = await outcomeOf(chain, relay, { hash: sent, waitMs: WAIT_MS })
  if (outcome === 'paid') {
    await finishRelay(relaying, relay, { state: 'confirmed', transactionHash: sent })
    return { transferId: relay.id, transactionHash: sent, status: 'confirmed' }
  }
  const state = 'settlement_pending'
  await updateRelay(database, relay.id, { state, transactionHash: sent }, clock())
  if (outcome === 'unpaid') return concluded(relaying, relay, new Error('the transaction paid nothing'))
  return { transferId: relay.id, transactionHash: sent, status: state }
}

/** Gives the budget back to a call that another was faster than, and keeps its end. */
async function turnAway({ database, clock }: RelayDependencies, row: NewRelay): Promise<Failure> {
  const end = rejected(
    'nonce_used',
    'What was signed, or another permit of its payer, is carried out by another call now.',
  )
  const { id, decisionId } = row
  const verdict = await database.transaction(async (connection) => {
    const released = await releaseSpend(connection, { decisionId, at: clock() })
    if (released === 'released')
      await insertRejectedRelay(connection, row, { failure: end.message, rejection: 'nonce_used' })
    return released
  })
  return verdict === 'released' ? end : failed({ id, failure: 'it was never sent', rejection: null })
}

/** Carries a relay on from wherever it was left. */
export async function resumeRelay(relaying: RelayDependencies, relay: Relay): Promise<void> {
  const { chain, clock, log, database } = relaying
  const { payment, transactionHash } = relay
  const outcome =
    transactionHash === null ? undefined : await outcomeOf(chain, relay, { hash: transactionHash, waitMs: 0 })
  if (outcome === 'paid' && transactionHash !== null)
    return finishRelay(relaying, relay, { state: 'confirmed', transactionHash })
  const end = await relayOutcome(relaying, relay)
  if (end !== undefined) {
    log.info({ relayId: relay.id, state: end.state }, 'the end of an open relay was found')
    return finishRelay(relaying, relay, end)
  }
  const isOver = clock().getTime() > relay.createdAt.getTime() + GIVEN_UP_MS
  if (outcome === 'unpaid' || isOver) {
    const failure = isOver ? 'the chain did not take it in time' : 'the transaction paid nothing'
    return finishRelay(relaying, relay, { state: 'failed', failure, rejection: null })
  }
  const last = await finalRelayOutcome(relaying, payment)
  if (last !== undefined) return finishRelay(relaying, relay, last)
  const hash = await send(chain, payment, relayMark(relaying, relay))
  await updateRelay(database, relay.id, { state: 'settlement_pending', transactionHash: hash }, clock())
}

/** Sends a relay again that the chain has lost. */
export async function resendRelay(relaying: RelayDependencies, relay: Relay): Promise<void> {
  await send(relaying.chain, relay.payment, relayMark(relaying, relay))
}

/**
 * Broadcasts for a caller who waits. What the chain refuses ends at once: nothing was sent.
 * @returns the hash of the transaction, or how it was executed by another.
 */
async function broadcast(relaying: RelayDependencies, relay: Relay): Promise<Hex | SubmittedRelay> {
  const { database, chain, clock, log } = relaying
  try {
    const hash = await send(chain, relay.payment, relayMark(relaying, relay))
    await updateRelay(database, relay.id, { state: 'submitted', transactionHash: hash }, clock())
    return hash
  } catch (cause) {
    if (isRefusedCall(cause)) return concluded(relaying, relay, cause)
    log.warn({ err: cause, relayId: relay.id }, 'it is not known whether the chain took a relay')
    // Where the payer took it back, this is certain all the same.
    const end = await relayOutcome(relaying, relay).catch(() => undefined)
    if (end?.state === 'failed') return ended(relaying, relay, end)
    throw pending(relay, cause)
  }
}

/** The end of a relay whose call the chain refused, or executed in vain. @throws Failure `settlement_pending` where it has none yet. */
async function concluded(relaying: RelayDependencies, relay: Relay, cause: Error): Promise<SubmittedRelay> {
  const { log } = relaying
  log.info({ relayId: relay.id, reason: cause.message }, 'the chain refused a relay')
  const end = await rejectedRelayOutcome(relaying, relay, cause.message).catch((err: unknown) => {
    log.warn({ err, relayId: relay.id }, 'the end of a relay cannot be read yet')
  })
  if (end === undefined) throw pending(relay, cause)
  return ended(relaying, relay, end)
}

async function ended(relaying: RelayDependencies, relay: Relay, end: RelayOutcome): Promise<SubmittedRelay> {
  await finishRelay(relaying, relay, end)
  if (end.state === 'failed') throw failed({ ...relay, ...end })
  return { transferId: relay.id, transactionHash: end.transactionHash, status: 'confirmed' }
}

function pending({ id, decisionId }: Relay, cause: unknown): Failure {
  return new Failure(
    'settlement_pending',
    `It is not known yet whether the chain took transfer ${id}.`,
    {
      decisionId,
      transferId: id,
      retryAfter: 5,
      hint: `Repeat this call with the same idempotency key, or read GET /api/wallets/transfers/${id}, to learn the outcome: what was signed is executed at most once.`,
    },
    { cause },
  )
}

/** Sends what is still to be sent. @param mark of the transaction that pays. @returns its hash. */
async function send(chain: Chain, payment: SignedPayment, mark: Hex): Promise<Hex> {
  const { signer } = chain
  if (payment.kind === 'authorization')
    return signer.writeContract({ ...signedCall(chain, payment), dataSuffix: mark })
  if (!(await isUsed(chain, payment))) {
    const hash = await signer.writeContract(signedCall(chain, payment))
    await signer.waitForTransactionReceipt({ hash, timeout: WAIT_MS })
  }
  return signer.writeContract({ ...collectCall(chain, payment), dataSuffix: mark })
}

/** Whether a relay's own transaction made exactly its transfer; undefined while it is not in a block, or cannot be read. */
async function outcomeOf(
  chain: Chain,
  { payment }: Relay,
  { hash, waitMs }: { hash: Hex; waitMs: number },
): Promise<'paid' | 'unpaid' | undefined> {
  // Silence is no answer: the transaction was broadcast.
  const receipt = await chain.signer
    .waitForTransactionReceipt({ hash, timeout: waitMs })
    .catch(() => undefined)
  if (receipt?.status === 'reverted') return 'unpaid'
  const transaction = receipt && (await chain.transaction(hash).catch(() => undefined))
  if (transaction === undefined) return undefined
  return isPaidBy(transaction, expectedOf(chain, payment)) ? 'paid' : 'unpaid'
}

/**
 * How an earlier relay went, for a caller that repeats its call.
 * @returns null while that is not known.
 * @throws Failure `authorization_rejected` where the token did not take it, `provider_unavailable` where it failed otherwise.
 */
export async function findRepeatedRelay(
  { database }: Pick<RelayDependencies, 'database'>,
  decisionId: string,
): Promise<SubmittedRelay | null> {
  const relay = await findRelayOfDecision(database, decisionId)
  if (relay === undefined) {
    // It is about to begin, or its process ended before it did and the budget was given back.
    if (!(await isReleased(database, decisionId))) return null
    throw failed({ id: decisionId, failure: 'it was never sent', rejection: null })
  }
  const { id: transferId, state, transactionHash } = relay
  if (state === 'failed') throw failed(relay)
  if (transactionHash === null) return null
  return { transferId, transactionHash, status: state === 'confirmed' ? state : 'settlement_pending' }
}

function failed({ id, failure, rejection }: Pick<Relay, 'id' | 'failure' | 'rejection'>): Failure {
  const words = failure ?? 'it was refused'
  if (rejection !== null) return rejectedLate(rejection, words)
  return new Failure('provider_unavailable', `The chain did not execute transfer ${id}: ${words}.`, {
    isFinal: true,
    hint: 'Send what was signed again with a new idempotency key, or sign a new one.',
  })
}
