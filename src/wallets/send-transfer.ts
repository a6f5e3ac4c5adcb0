/**
 * One transfer out of a wallet: row → broadcast → settle. Called with money that is already reserved. Whatever is not known
 * stays held and is finished by the settle-pending job; the chain executes a transfer's id at most once.
 */
import type { Clock } from '../clock.ts'
import { Failure } from '../failure.ts'
import type { NewId } from '../ids.ts'
import type { Log } from '../log.ts'
import { decimalOf, type Stablecoin } from '../money.ts'
import type { Address, Chain, Hex, Submission, TransferOutcome } from '../providers/chain.ts'
import type { Database } from '../storage/database.ts'
import { finishTransfer } from './finish-transfer.ts'
import { insertTransfer, lowerCase, type Transfer, updateTransfer } from './store.ts'

/** How long a caller waits for the chain before it is told `settlement_pending`. */
const WAIT_MS = 3000

/** What sending needs. */
export interface Sending {
  readonly database: Database
  readonly chain: Chain
  readonly newId: NewId
  readonly clock: Clock
  readonly log: Log
}

/** What is to be sent, under an allowed decision. */
export interface TransferOrder {
  readonly accountId: string
  readonly decisionId: string
  readonly token: Stablecoin
  readonly units: bigint
  readonly destination: Address
  readonly at: Date
}

/** A transfer that the chain has taken. */
export interface SentTransfer {
  readonly transferId: string
  readonly transactionHash: Hex
  readonly status: 'confirmed' | 'settlement_pending'
}

/**
 * Sends reserved money.
 * @throws Failure `provider_unavailable` where the chain refused (the money is free again), `settlement_pending` where it is
 * not known whether it took the transfer (the money stays held until it is).
 */
export async function sendTransfer(sending: Sending, order: TransferOrder): Promise<SentTransfer> {
  const { database, chain, newId } = sending
  const transfer: Transfer = {
    id: newId('tx', order.at),
    accountId: order.accountId,
    decisionId: order.decisionId,
    token: order.token,
    units: order.units,
    destination: lowerCase(order.destination),
    chain: chain.name,
    state: 'reserved',
    transactionHash: null,
  }
  if (!(await insertTransfer(database, transfer, sending.clock())))
    throw new Failure('conflict', 'The reservation of this transfer has ended; nothing was sent.', {
      hint: 'Send the request again.',
    })
  const submission = await submit(sending, transfer)
  if (submission.status === 'refused') return refused(sending, transfer, submission.reason)
  const outcome = await waitForOutcome(sending, transfer)
  if (outcome.status === 'failed') {
    await finishTransfer(sending, transfer, { state: 'failed', failure: 'the operation reverted' })
    throw failedTransfer(transfer.id, 'the operation reverted')
  }
  if (outcome.status === 'confirmed') {
    // Whoever's transaction it was that the chain executed, this one or that of a job that resumed it.
    const { transactionHash } = outcome
    await finishTransfer(sending, transfer, { state: 'confirmed', transactionHash })
    return { transferId: transfer.id, transactionHash, status: 'confirmed' }
  }
  const { transactionHash } = submission
  const state = 'settlement_pending'
  await updateTransfer(database, transfer.id, { state, transactionHash }, sending.clock())
  return { transferId: transfer.id, transactionHash, status: state }
}

async function submit({ chain, log }: Sending, transfer: Transfer): Promise<Submission> {
  try {
    return await chain.submitTransfer({ ...transfer, transferId: transfer.id, to: transfer.destination })
  } catch (cause) {
    log.warn({ err: cause, transferId: transfer.id }, 'it is not known whether the chain took a transfer')
    throw new Failure(
      'settlement_pending',
      `It is not known yet whether the chain took transfer ${transfer.id}; its money stays held until it is.`,
      {
        decisionId: transfer.decisionId,
        transferId: transfer.id,
        retryAfter: 5,
        hint: 'Do not send it anew. Repeat this call with the same idempotency key to learn the outcome; without one, watch "held" of the wallet, which is settled or given back within seconds.',
      },
      { cause },
    )
  }
}

/** What the chain says within {@link WAIT_MS}. Silence and errors are pending: the transaction was broadcast. */
async function waitForOutcome({ chain, log }: Sending, transfer: Transfer): Promise<TransferOutcome> {
  try {
    const onChain = { ...transfer, transferId: transfer.id, to: transfer.destination }
    return await chain.outcomeOf(onChain, WAIT_MS)
  } catch (err) {
    log.warn({ err, transferId: transfer.id }, 'the outcome of a transfer cannot be read yet')
    return { status: 'pending' }
  }
}

async function refused(sending: Sending, transfer: Transfer, reason: string): Promise<never> {
  await finishTransfer(sending, transfer, { state: 'failed', failure: reason })
  const amount = decimalOf({ asset: transfer.token, units: transfer.units })
  sending.log.error(
    { transferId: transfer.id, amount, reason },
    'the chain refused a transfer that the ledger allowed',
  )
  throw failedTransfer(transfer.id, reason)
}

/** A transfer that the chain did not execute and never will. */
export function failedTransfer(transferId: string, reason: string): Failure {
  return new Failure(
    'provider_unavailable',
    `The chain did not execute transfer ${transferId}: ${reason}. Nothing moved; the money is free again.`,
    { isFinal: true, hint: 'Send it again with a new idempotency key.' },
  )
}
