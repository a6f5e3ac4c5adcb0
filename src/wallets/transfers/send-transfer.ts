/**
 * One transfer out of a wallet: row → broadcast → settle. Called with money that is already reserved. Whatever is not known
 * stays held and is finished by the settle-pending job; the chain executes a transfer's id at most once.
 */
import type { Clock } from '../../base/clock.ts'
import type { NewId } from '../../base/ids.ts'
import type { Log } from '../../base/log.ts'
import { type OperationOutcome, operationOutcome } from '../../evidence/operation-outcome.ts'
import { Failure } from '../../failures/failure.ts'
import { decimalOf, type Stablecoin } from '../../money/money.ts'
import type { Address, Authorization, Chain, Hex, Submission } from '../../providers/chain.ts'
import { releaseSpend } from '../../spending/release.ts'
import type { Database } from '../../storage/database.ts'
import {
  type FailureCode,
  insertTransfer,
  lowerCase,
  operationOf,
  type Signer,
  type Transfer,
  updateTransfer,
} from '../store.ts'
import { failedTransfer, intentUsed } from './failed-transfer.ts'
import { finishTransfer } from './finish-transfer.ts'
import { transferMac } from './transfer-mac.ts'

/** How long a caller waits for the chain before it is told `settlement_pending`. */
const WAIT_MS = 3000

/** How long the chain may execute a transfer that no intent set a time to: one whose fate is unknown ends soon after. */
const VALID_MS = { development: 60_000, public: 3 * 60_000 } as const

/** What sending needs. */
export interface TransferDependencies {
  readonly database: Database
  readonly chain: Chain
  readonly newId: NewId
  readonly clock: Clock
  readonly log: Log
  readonly settings: { readonly dataKey: Uint8Array }
}

/** Who authorizes a transfer, and how the chain verifies it. @property intent the signed intent, if any: it fixes the transfer's id. */
export interface TransferAuthorization {
  readonly signer: Signer
  readonly authorization: Authorization
  readonly intent?:
    | { readonly id: string; readonly transferId: string; readonly validUntil: Date }
    | undefined
}

/** What is to be sent, under an allowed decision. */
export interface TransferOrder {
  readonly authorizedBy: TransferAuthorization
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
export async function sendTransfer(
  sending: TransferDependencies,
  order: TransferOrder,
): Promise<SentTransfer> {
  const { database, chain, newId } = sending
  const { accountId, at, authorizedBy } = order
  const content = {
    id: authorizedBy.intent?.transferId ?? newId('tx', at),
    authorization: authorizedBy.authorization,
    signer: authorizedBy.signer,
    validUntil:
      authorizedBy.intent?.validUntil ??
      new Date(at.getTime() + VALID_MS[chain.isGasFree ? 'development' : 'public']),
    decisionId: order.decisionId,
    token: order.token,
    units: order.units,
    destination: lowerCase(order.destination),
    chain: chain.name,
  }
  const row = { ...content, mac: transferMac(sending.settings.dataKey, accountId, content) }
  const intentId = authorizedBy.intent?.id ?? null
  const wallet = await insertTransfer(database, row, { accountId, intentId, at: sending.clock() })
  if (wallet === undefined) return notInserted(sending, order)
  const transfer: Transfer = { ...row, wallet, state: 'reserved', transactionHash: null }
  const startedAt = performance.now()
  const submission = await submit(sending, transfer)
  if (submission.status === 'refused') return refused(sending, transfer, submission)
  const { transactionHash } = submission
  const outcome = await waitForOutcome(
    sending,
    transfer,
    transactionHash,
    Math.max(0, WAIT_MS - Math.ceil(performance.now() - startedAt)),
  )
  if (outcome.status === 'failed' || outcome.status === 'canceled') {
    const end = failureOf(transfer, outcome.status)
    await finishTransfer(sending, transfer, { state: 'failed', ...end })
    throw failedTransfer(transfer.id, end)
  }
  if (outcome.status === 'confirmed') {
    // Whoever's transaction it was that the chain executed, this one or that of a job that resumed it.
    await finishTransfer(sending, transfer, { state: 'confirmed', transactionHash: outcome.transactionHash })
    return { transferId: transfer.id, transactionHash: outcome.transactionHash, status: 'confirmed' }
  }
  const state = 'settlement_pending'
  await updateTransfer(database, transfer.id, { state, transactionHash }, sending.clock())
  return { transferId: transfer.id, transactionHash, status: state }
}

async function submit({ chain, log }: TransferDependencies, transfer: Transfer): Promise<Submission> {
  try {
    const submitting = chain.submit(operationOf(transfer))
    // Whoever gives up waiting leaves it to the job; what it comes to then concerns nobody here.
    submitting.catch(() => undefined)
    return await inTime(submitting)
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

async function inTime(submitting: Promise<Submission>): Promise<Submission> {
  const late = AbortSignal.timeout(WAIT_MS)
  return Promise.race([
    submitting,
    new Promise<never>((_resolve, reject) => {
      late.addEventListener('abort', () =>
        reject(new Error(`the chain did not respond within ${WAIT_MS} ms`)),
      )
    }),
  ])
}

/**
 * Why an operation failed that passed its simulation: its wallet used the nonce for another operation, or it reverted, as it
 * does for an agent where other transfers used up the allowance first.
 */
export function failureOf(
  { authorization }: Pick<Transfer, 'authorization'>,
  status: 'failed' | 'canceled',
): { failure: string; code: FailureCode } {
  if (status === 'canceled')
    return { failure: 'its wallet executed another operation under its nonce', code: 'signature_rejected' }
  return authorization.kind === 'allowance'
    ? { failure: 'the on-chain allowance no longer sufficed', code: 'signature_rejected' }
    : { failure: 'the operation reverted', code: 'provider_unavailable' }
}

/**
 * What the chain says within {@link WAIT_MS}. One that is not in a block at once is kept with its hash before it is waited
 * for. Silence and errors are pending: the transaction was broadcast.
 */
async function waitForOutcome(
  { chain, database, clock, log }: TransferDependencies,
  transfer: Transfer,
  transactionHash: Hex,
  waitMs: number,
): Promise<OperationOutcome> {
  try {
    const operation = operationOf(transfer)
    const now = await operationOutcome(chain, operation, 0)
    if ('transactionHash' in now) return now
    await updateTransfer(database, transfer.id, { state: 'submitted', transactionHash }, clock())
    return await operationOutcome(chain, operation, waitMs)
  } catch (err) {
    log.warn({ err, transferId: transfer.id }, 'the outcome of a transfer cannot be read yet')
    return { status: 'pending' }
  }
}

async function refused(
  sending: TransferDependencies,
  transfer: Transfer,
  { reason, cause }: Extract<Submission, { status: 'refused' }>,
): Promise<never> {
  const code: FailureCode = cause === 'authorization' ? 'signature_rejected' : 'provider_unavailable'
  const end = { failure: reason, code }
  await finishTransfer(sending, transfer, { state: 'failed', ...end })
  const amount = decimalOf({ asset: transfer.token, units: transfer.units })
  sending.log.error(
    { transferId: transfer.id, amount, reason },
    'the chain refused a transfer that the ledger allowed',
  )
  throw failedTransfer(transfer.id, end)
}

/** The reservation has ended, or the intent was used by another call: then the money is given back here. */
async function notInserted(
  { database, clock }: TransferDependencies,
  { decisionId, authorizedBy }: TransferOrder,
): Promise<never> {
  if (authorizedBy.intent === undefined)
    throw new Failure('conflict', 'The reservation of this transfer has ended; nothing was sent.', {
      hint: 'Send the request again.',
    })
  await releaseSpend(database, { decisionId, at: clock() })
  throw intentUsed()
}
