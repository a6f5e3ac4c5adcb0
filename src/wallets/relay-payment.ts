/**
 * One relay: row → broadcast → end. What was signed is executed at most once by the token itself, whoever sends it how
 * often. The money is not ours: nothing is held, and only what arrives at a wallet of ours is booked.
 */
import { type Signature as EvmSignature, parseSignature, size } from 'viem'
import type { Clock } from '../clock.ts'
import { Failure } from '../failure.ts'
import type { NewId } from '../ids.ts'
import { external } from '../ledger/accounts.ts'
import type { Log } from '../log.ts'
import type { Chain, Hex } from '../providers/chain.ts'
import { releaseSpend } from '../spending/release.ts'
import { settleSpend } from '../spending/settle.ts'
import type { Database } from '../storage/database.ts'
import { bookDeposit } from './open-wallet.ts'
import { insertRelay, type Relay, updateRelay } from './relay-store.ts'
import { findWalletOwner } from './store.ts'
import {
  allowedUnits,
  authorizationAbi,
  isUsed,
  judgePayment,
  rejected,
  type SignedPayment,
} from './token-authorization.ts'

/** How long a caller waits for the chain before it is told `settlement_pending`. */
const WAIT_MS = 3000

/** After so long a relay that the chain never took is given up. What was signed may then be sent anew. */
const GIVEN_UP_MS = 10 * 60_000

/** What relaying needs. */
export interface Relaying {
  readonly database: Database
  readonly chain: Chain
  readonly newId: NewId
  readonly clock: Clock
  readonly log: Log
}

/** A relay that the chain has taken. @property transactionHash null where it was executed and nobody saw by which. */
export interface SentRelay {
  readonly transferId: string
  readonly transactionHash: Hex | null
  readonly status: 'confirmed' | 'settlement_pending'
}

/**
 * Carries a payment to the chain, under an allowed decision.
 * @throws Failure `authorization_rejected` where it is carried already or the chain would not take it, `settlement_pending`
 * where that is not known.
 */
export async function relayPayment(
  relaying: Relaying,
  order: { accountId: string; decisionId: string; payment: SignedPayment; at: Date },
): Promise<SentRelay> {
  const { database, chain, newId, clock } = relaying
  const { at, ...rest } = order
  const row = { ...rest, id: newId('tx', at), chain: chain.name, createdAt: at }
  if (!(await insertRelay(database, row))) {
    await releaseSpend(database, { decisionId: order.decisionId, at: clock() })
    throw rejected(
      'nonce_used',
      'What was signed, or another permit of its payer, is carried out by another call now.',
    )
  }
  const relay: Relay = { ...row, state: 'reserved', transactionHash: null, failure: null }
  const hash = await broadcast(relaying, relay)
  const outcome = await receiptOf(chain, hash, WAIT_MS)
  if (outcome === 'success') {
    await finishRelay(relaying, relay, { state: 'confirmed', transactionHash: hash })
    return { transferId: relay.id, transactionHash: hash, status: 'confirmed' }
  }
  const state = 'settlement_pending'
  await updateRelay(database, relay.id, { state, transactionHash: hash }, clock())
  return { transferId: relay.id, transactionHash: hash, status: state }
}

/** Carries a relay on from wherever it was left. */
export async function resumeRelay(relaying: Relaying, relay: Relay): Promise<void> {
  const { chain, clock, log, database } = relaying
  const { payment, transactionHash } = relay
  const outcome = transactionHash === null ? undefined : await receiptOf(chain, transactionHash, 0)
  if (outcome === 'success') return finishRelay(relaying, relay, { state: 'confirmed', transactionHash })
  const end = await endOf(chain, payment)
  if (end !== undefined) {
    log.info({ relayId: relay.id, state: end.state }, 'the end of an open relay was found')
    return finishRelay(relaying, relay, end)
  }
  const isOver = clock().getTime() > relay.createdAt.getTime() + GIVEN_UP_MS
  if (outcome === 'reverted' || isOver) {
    const failure = isOver ? 'the chain did not take it in time' : 'the transaction reverted'
    return finishRelay(relaying, relay, { state: 'failed', failure })
  }
  const hash = await send(chain, payment)
  await updateRelay(database, relay.id, { state: 'settlement_pending', transactionHash: hash }, clock())
}

/** Broadcasts for a caller who waits. Where that fails the payment is judged anew: what can never be taken is told so. */
async function broadcast(relaying: Relaying, relay: Relay): Promise<Hex> {
  const { database, chain, clock, log } = relaying
  try {
    const hash = await send(chain, relay.payment)
    await updateRelay(database, relay.id, { state: 'submitted', transactionHash: hash }, clock())
    return hash
  } catch (cause) {
    log.warn({ err: cause, relayId: relay.id }, 'it is not known whether the chain took a relay')
    const refusal = await judgePayment(chain, relay.payment, clock()).catch((error: unknown) => error)
    const isRefused = refusal instanceof Failure && refusal.code === 'authorization_rejected'
    // One whose nonce is used may have been executed by this very broadcast.
    if (isRefused && refusal.members.reason !== 'nonce_used') {
      await finishRelay(relaying, relay, { state: 'failed', failure: refusal.message })
      throw refusal
    }
    throw new Failure(
      'settlement_pending',
      `It is not known yet whether the chain took transfer ${relay.id}.`,
      {
        decisionId: relay.decisionId,
        transferId: relay.id,
        retryAfter: 5,
        hint: 'Repeat this call with the same idempotency key to learn the outcome: what was signed is executed at most once.',
      },
      { cause },
    )
  }
}

/** Sends what is still to be sent. @returns the hash of the transaction that pays. */
async function send(chain: Chain, payment: SignedPayment): Promise<Hex> {
  const { signer, tokens } = chain
  const { kind, token, payer, destination, units, validAfter, validBefore, nonce } = payment
  const contract = { address: tokens[token], abi: authorizationAbi }
  const signature = signatureArgs(payment.signature)
  if (kind === 'authorization') {
    const args = [payer, destination, units, validAfter, validBefore, nonce, ...signature]
    return signer.writeContract({ ...contract, functionName: 'transferWithAuthorization', args })
  }
  if (!(await isUsed(chain, payment))) {
    const args = [payer, signer.address, units, validBefore, ...signature]
    const hash = await signer.writeContract({ ...contract, functionName: 'permit', args })
    await signer.waitForTransactionReceipt({ hash, timeout: WAIT_MS })
  }
  return signer.writeContract({
    ...contract,
    functionName: 'transferFrom',
    args: [payer, destination, units],
  })
}

/** A key's signature in the form that every token takes; a contract wallet's as its bytes. */
function signatureArgs(signature: Hex): readonly unknown[] {
  if (size(signature) !== 65) return [signature]
  const { r, s, yParity }: EvmSignature = parseSignature(signature)
  return [27 + yParity, r, s]
}

/**
 * How a payment ended whose own transaction nobody saw succeed; undefined where it can still be sent. Only what the token
 * itself says was paid is booked: its holder could otherwise take it back at the right moment and be credited all the same.
 */
async function endOf(chain: Chain, payment: SignedPayment): Promise<RelayEnd | undefined> {
  const { kind, token, payer, units } = payment
  if (kind === 'authorization') {
    const nonce: Hex = `0x${payment.nonce.slice(2)}`
    const outcome = await chain.authorizationOutcome({ token: chain.tokens[token], authorizer: payer, nonce })
    if (outcome.status === 'used') return { state: 'confirmed', transactionHash: outcome.transactionHash }
    return outcome.status === 'canceled' ? { state: 'failed', failure: 'its payer took it back' } : undefined
  }
  // A permit's number moves before its money, and what it allows is gone once it was taken, or taken back.
  if (!(await isUsed(chain, payment)) || (await allowedUnits(chain, token, payer)) >= units) return undefined
  return {
    state: 'failed',
    failure: 'what it allowed is gone, and no transaction of ours was seen to take it',
  }
}

async function receiptOf(
  { signer }: Pick<Chain, 'signer'>,
  hash: Hex,
  timeoutMs: number,
): Promise<string | undefined> {
  // Silence is no answer: the transaction was broadcast.
  const receipt = await signer.waitForTransactionReceipt({ hash, timeout: timeoutMs }).catch(() => undefined)
  return receipt?.status
}

/** How a relay ended. */
type RelayEnd =
  | { readonly state: 'confirmed'; readonly transactionHash: Hex | null }
  | { readonly state: 'failed'; readonly failure: string }

/** Ends a relay, its share of the budget, and books what arrived at a wallet of ours, in one transaction and once. */
async function finishRelay(relaying: Relaying, relay: Relay, end: RelayEnd): Promise<void> {
  const { database, chain, clock } = relaying
  const at = clock()
  const { id, decisionId, payment } = relay
  const { token: asset, units, destination } = payment
  const receiver = end.state === 'confirmed' ? await findWalletOwner(database, destination) : undefined
  await database.transaction(async (connection) => {
    const { state } = end
    const row =
      state === 'failed'
        ? { state, failure: end.failure }
        : { state, ...(end.transactionHash === null ? {} : { transactionHash: end.transactionHash }) }
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

/** How an earlier relay went, for a caller that repeats its call. @returns null while that is not known. */
export function recalled(relay: Relay): SentRelay | null {
  const { id: transferId, state, transactionHash, failure } = relay
  if (state === 'failed')
    throw new Failure(
      'provider_unavailable',
      `The chain did not execute transfer ${transferId}: ${failure}.`,
      {
        isFinal: true,
        hint: 'Send what was signed again with a new idempotency key, or sign a new one.',
      },
    )
  if (state === 'confirmed') return { transferId, transactionHash, status: 'confirmed' }
  return transactionHash === null ? null : { transferId, transactionHash, status: 'settlement_pending' }
}
