/**
 * One relay: row, broadcast, completion. The token executes the signed payment at most once, however often and by
 * any caller. The money is not ours: nothing is held, and only a payment to one of our wallets is booked.
 */
import { isPaidBy } from '../../../books/evidence/payment-outcome.ts'
import { releaseSpend } from '../../../books/spending/release.ts'
import { Failure } from '../../../core/failures/failure.ts'
import { type Chain, type Hex, isRefusedCall } from '../../../providers/chain/port.ts'
import { collectCall, signedCall } from './payment-call.ts'
import {
  finalRelayOutcome,
  finishRelay,
  type RelayDependencies,
  type RelayOutcome,
  rejectedRelayOutcome,
  relayMark,
  relayOutcome,
  toExpected,
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
import { buildLateRejection, buildRejection, isUsed } from './token-authorization.ts'

/** How long a caller waits for the chain before the answer is `settlement_pending`. */
const WAIT_MS = 3000

/** A relay that the chain has not accepted after this time is given up. The signed payment may then be sent again. */
const GIVE_UP_MS = 10 * 60_000

/** A relay that the chain has accepted. */
export interface SubmittedRelay {
  readonly transferId: string
  readonly transactionHash: Hex
  readonly status: 'confirmed' | 'settlement_pending'
}

/**
 * Submits a payment to the chain, under an allowed decision.
 * @throws Failure `authorization_rejected` when it is already being relayed or the chain would reject it;
 * `settlement_pending` when that is unknown.
 */
export async function relayPayment(
  dependencies: RelayDependencies,
  order: { accountId: string; decisionId: string; payment: SignedPayment; at: Date },
): Promise<SubmittedRelay> {
  const { database, chain, newId, clock } = dependencies
  const { at, ...rest } = order
  const row = { ...rest, id: newId('tx', at), chain: chain.name, createdAt: at }
  if (!(await insertRelay(database, row))) throw await rejectDuplicate(dependencies, row)
  const relay: Relay = {
    ...row,
    state: 'reserved',
    transactionHash: null,
    failure: null,
    rejection: null,
    updatedAt: at,
  }
  const sent = await broadcast(dependencies, relay)
  if (typeof sent !== 'string') return sent
  const outcome = await awaitOutcome(chain, relay, { hash: sent, waitMs: WAIT_MS })
  if (outcome === 'paid') {
    await finishRelay(dependencies, relay, { state: 'confirmed', transactionHash: sent })
    return { transferId: relay.id, transactionHash: sent, status: 'confirmed' }
  }
  const state = 'settlement_pending'
  await updateRelay(database, relay.id, { state, transactionHash: sent }, clock())
  if (outcome === 'unpaid')
    return completeRejected(dependencies, relay, new Error('the transaction paid nothing'))
  return { transferId: relay.id, transactionHash: sent, status: state }
}

/** Releases the budget of a call that lost to a concurrent one, and records its outcome. */
async function rejectDuplicate({ database, clock }: RelayDependencies, row: NewRelay): Promise<Failure> {
  const end = buildRejection(
    'nonce_used',
    'The signed payment, or another permit of its payer, is being carried out by another call.',
  )
  const { id, decisionId } = row
  const verdict = await database.transaction(async (connection) => {
    const released = await releaseSpend(connection, { decisionId, at: clock() })
    if (released === 'released')
      await insertRejectedRelay(connection, row, { failure: end.message, rejection: 'nonce_used' })
    return released
  })
  return verdict === 'released' ? end : toFailure({ id, failure: 'it was never sent', rejection: null })
}

/** Resumes a relay from its recorded state. */
export async function resumeRelay(dependencies: RelayDependencies, relay: Relay): Promise<void> {
  const { chain, clock, log, database } = dependencies
  const { payment, transactionHash } = relay
  const outcome =
    transactionHash === null
      ? undefined
      : await awaitOutcome(chain, relay, { hash: transactionHash, waitMs: 0 })
  if (outcome === 'paid' && transactionHash !== null)
    return finishRelay(dependencies, relay, { state: 'confirmed', transactionHash })
  const end = await relayOutcome(dependencies, relay)
  if (end !== undefined) {
    log.info({ relayId: relay.id, state: end.state }, 'the outcome of an open relay was found')
    return finishRelay(dependencies, relay, end)
  }
  const isOver = clock().getTime() > relay.createdAt.getTime() + GIVE_UP_MS
  if (outcome === 'unpaid' || isOver) {
    const failure = isOver ? 'the chain did not take it in time' : 'the transaction paid nothing'
    return finishRelay(dependencies, relay, { state: 'failed', failure, rejection: null })
  }
  const last = await finalRelayOutcome(dependencies, payment)
  if (last !== undefined) return finishRelay(dependencies, relay, last)
  const hash = await send(chain, payment, relayMark(dependencies, relay))
  await updateRelay(database, relay.id, { state: 'settlement_pending', transactionHash: hash }, clock())
}

/** Sends a relay again that the chain has lost. */
export async function resendRelay(dependencies: RelayDependencies, relay: Relay): Promise<void> {
  await send(dependencies.chain, relay.payment, relayMark(dependencies, relay))
}

/**
 * Broadcasts for a waiting caller. A payment that the chain rejects fails at once, because nothing was sent.
 * @returns the transaction's hash, or the completed relay if another transaction executed it.
 */
async function broadcast(dependencies: RelayDependencies, relay: Relay): Promise<Hex | SubmittedRelay> {
  const { database, chain, clock, log } = dependencies
  try {
    const hash = await send(chain, relay.payment, relayMark(dependencies, relay))
    await updateRelay(database, relay.id, { state: 'submitted', transactionHash: hash }, clock())
    return hash
  } catch (cause) {
    if (isRefusedCall(cause)) return completeRejected(dependencies, relay, cause)
    log.warn({ err: cause, relayId: relay.id }, 'it is unknown whether the chain accepted a relay')
    // A cancellation by the payer is certain even now.
    const end = await relayOutcome(dependencies, relay).catch(() => undefined)
    if (end?.state === 'failed') return complete(dependencies, relay, end)
    throw pending(relay, cause)
  }
}

/**
 * Completes a relay whose call the chain rejected or executed without effect.
 * @throws Failure `settlement_pending` while it has no outcome.
 */
async function completeRejected(
  dependencies: RelayDependencies,
  relay: Relay,
  cause: Error,
): Promise<SubmittedRelay> {
  const { log } = dependencies
  log.info({ relayId: relay.id, reason: cause.message }, 'the chain rejected a relay')
  const end = await rejectedRelayOutcome(dependencies, relay, cause.message).catch((err: unknown) => {
    log.warn({ err, relayId: relay.id }, 'the outcome of a relay cannot be read yet')
  })
  if (end === undefined) throw pending(relay, cause)
  return complete(dependencies, relay, end)
}

async function complete(
  dependencies: RelayDependencies,
  relay: Relay,
  end: RelayOutcome,
): Promise<SubmittedRelay> {
  await finishRelay(dependencies, relay, end)
  if (end.state === 'failed') throw toFailure({ ...relay, ...end })
  return { transferId: relay.id, transactionHash: end.transactionHash, status: 'confirmed' }
}

function pending({ id, decisionId }: Relay, cause: unknown): Failure {
  return new Failure(
    'settlement_pending',
    `It is not yet known whether the chain accepted transfer ${id}.`,
    {
      decisionId,
      transferId: id,
      retryAfter: 5,
      hint: `Repeat this call with the same idempotency key, or read GET /api/wallets/transfers/${id}, to get the outcome: the signed payment is executed at most once.`,
    },
    { cause },
  )
}

/** Sends the remaining transactions. @param mark mark of the paying transaction. @returns its hash. */
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

/**
 * Checks whether a relay's own transaction made exactly its transfer; undefined while it is not in a block or cannot
 * be read.
 */
async function awaitOutcome(
  chain: Chain,
  { payment }: Relay,
  { hash, waitMs }: { hash: Hex; waitMs: number },
): Promise<'paid' | 'unpaid' | undefined> {
  // A timeout is not an outcome: the transaction was broadcast.
  const receipt = await chain.signer
    .waitForTransactionReceipt({ hash, timeout: waitMs })
    .catch(() => undefined)
  if (receipt?.status === 'reverted') return 'unpaid'
  const transaction = receipt && (await chain.transaction(hash).catch(() => undefined))
  if (transaction === undefined) return undefined
  return isPaidBy(transaction, toExpected(chain, payment)) ? 'paid' : 'unpaid'
}

/**
 * Finds the outcome of an earlier relay, for a repeated call.
 * @returns null while it is unknown.
 * @throws Failure `authorization_rejected` when the token rejected it; `provider_unavailable` for any other failure.
 */
export async function findRepeatedRelay(
  { database }: Pick<RelayDependencies, 'database'>,
  decisionId: string,
): Promise<SubmittedRelay | null> {
  const relay = await findRelayOfDecision(database, decisionId)
  if (relay === undefined) {
    // The relay is about to start, or its process ended first and the budget was released.
    if (!(await isReleased(database, decisionId))) return null
    throw toFailure({ id: decisionId, failure: 'it was never sent', rejection: null })
  }
  const { id: transferId, state, transactionHash } = relay
  if (state === 'failed') throw toFailure(relay)
  if (transactionHash === null) return null
  return { transferId, transactionHash, status: state === 'confirmed' ? state : 'settlement_pending' }
}

function toFailure({ id, failure, rejection }: Pick<Relay, 'id' | 'failure' | 'rejection'>): Failure {
  const words = failure ?? 'it was refused'
  if (rejection !== null) return buildLateRejection(rejection, words)
  return new Failure('provider_unavailable', `The chain did not execute transfer ${id}: ${words}.`, {
    isFinal: true,
    hint: 'Send the signed payment again with a new idempotency key, or sign a new one.',
  })
}
