/**
 * One transfer out of a wallet: row, broadcast, settlement. Called with money already reserved. While the outcome is
 * unknown the money stays held, and the settle-pending job completes it; the chain executes a transfer's id at most
 * once.
 */

import { type OperationOutcome, operationOutcome } from '../../../books/evidence/operation-outcome.ts'
import { releaseSpend } from '../../../books/spending/release.ts'
import type { TransferRow } from '../../../books/spending/spend-request.ts'
import type { Clock } from '../../../core/base/clock.ts'
import type { NewId } from '../../../core/base/ids.ts'
import type { Log } from '../../../core/base/log.ts'
import { timers } from '../../../core/base/timers.ts'
import { Failure } from '../../../core/failures/failure.ts'
import { type Stablecoin, toDecimal } from '../../../core/money/money.ts'
import type {
  Address,
  Authorization,
  Chain,
  Hex,
  Submission,
  SwapRoute,
  Wallet,
} from '../../../providers/chain/port.ts'
import type { Database } from '../../../storage/database.ts'
import {
  findTransferOfDecision,
  insertTransfer,
  lowerCase,
  type Signer,
  type Transfer,
  type TransferFailureCode,
  toOperation,
  updateTransfer,
} from '../store.ts'
import { buildUsedIntentFailure, failedTransfer } from './failed-transfer.ts'
import { finishTransfer } from './finish-transfer.ts'
import { transferMac } from './transfer-mac.ts'

/** How long a caller waits for the chain before the answer is `settlement_pending`. */
const WAIT_MS = 3000

/** Validity of a transfer without an intent on the chain: a transfer with unknown outcome expires soon after. */
const VALID_MS = { development: 60_000, public: 3 * 60_000 } as const

export interface TransferDependencies {
  readonly database: Database
  readonly chain: Chain
  readonly newId: NewId
  readonly clock: Clock
  readonly log: Log
  readonly settings: { readonly dataKey: Uint8Array }
}

/**
 * Authorization of a transfer and its form on the chain.
 * @property intent signed intent, if any; it determines the transfer's id.
 */
export interface TransferAuthorization {
  readonly signer: Signer
  readonly authorization: Authorization
  readonly intent?:
    | { readonly id: string; readonly transferId: string; readonly validUntil: Date }
    | undefined
}

/** A transfer to send, under an allowed decision. @property payer of the account's two smart accounts; by default its wallet. */
export interface TransferOrder {
  readonly authorizedBy: TransferAuthorization
  readonly accountId: string
  readonly payer?: 'escrow'
  readonly decisionId: string
  readonly token: Stablecoin
  readonly units: bigint
  readonly destination: Address
  /** Route of a swap, which the destination executes; absent: a plain payment. */
  readonly route?: SwapRoute
  /** Present: it burns the money of a payment, by its own reservation. */
  readonly fundingId?: string
  /** How long it may wait for its money, in milliseconds; absent: its money is held. */
  readonly waitMs?: number
  readonly at: Date
}

/** A transfer that the chain has accepted. */
export interface SentTransfer {
  readonly transferId: string
  readonly transactionHash: Hex
  readonly status: 'confirmed' | 'settlement_pending'
}

/**
 * Plans a transfer, whose row may be written with the hold of its money or after it.
 * @returns the row under a decision; the same transfer for every decision.
 */
export function planTransfer(
  { chain, newId, clock, settings }: Pick<TransferDependencies, 'chain' | 'newId' | 'clock' | 'settings'>,
  {
    accountId,
    authorizedBy,
    payer,
    token,
    units,
    destination,
    route,
    fundingId,
    waitMs,
    at,
  }: Omit<TransferOrder, 'decisionId'>,
): (decisionId: string) => TransferRow {
  const { authorization, signer, intent } = authorizedBy
  const id = intent?.transferId ?? newId('tx', at)
  const lifetimeMs = VALID_MS[chain.isGasFree ? 'development' : 'public']
  const validUntil = intent?.validUntil ?? new Date(at.getTime() + (waitMs ?? 0) + lifetimeMs)
  return (decisionId) => {
    const to = lowerCase(destination)
    const content = {
      ...{ id, token, units, destination: to, chain: chain.name, authorization, validUntil },
      ...(route === undefined ? {} : { route }),
      ...(fundingId === undefined ? {} : { fundingId }),
    }
    const wallet = { accountId, ...(payer === 'escrow' && { isEscrow: true as const }) }
    const mac = transferMac(settings.dataKey, { ...content, decisionId, wallet })
    return {
      ...content,
      ...(waitMs === undefined ? {} : { state: 'funding' as const }),
      ...{ payer: payer ?? 'wallet', signer, mac, intentId: intent?.id ?? null, at: clock() },
    }
  }
}

/**
 * Sends reserved money.
 * @throws Failure `provider_unavailable` when the chain rejected it (the money is available again);
 * `settlement_pending` when the outcome is unknown (the money stays held until it is known).
 */
export async function sendTransfer(
  dependencies: TransferDependencies,
  order: TransferOrder,
): Promise<SentTransfer> {
  const { accountId, decisionId } = order
  const row = planTransfer(dependencies, order)(decisionId)
  const wallet = await insertTransfer(dependencies.database, { accountId, decisionId, row })
  return sendWritten(dependencies, { decisionId, row, wallet })
}

/**
 * Sends a transfer whose row was written. @param wallet from which it is sent; undefined where no row was written.
 * @throws Failure as {@link sendTransfer}.
 */
export async function sendWritten(
  dependencies: TransferDependencies,
  { decisionId, row, wallet }: { decisionId: string; row: TransferRow; wallet: Wallet | undefined },
): Promise<SentTransfer> {
  const { database } = dependencies
  if (wallet === undefined) return notInserted(dependencies, { decisionId, hasIntent: row.intentId !== null })
  const transfer: Transfer = { ...row, decisionId, wallet, state: 'reserved', transactionHash: null }
  const startedAt = timers.monotonic()
  const submission = await submit(dependencies, transfer)
  if (submission.status === 'refused') return fail(dependencies, transfer, submission)
  const { transactionHash } = submission
  const outcome = await waitForOutcome(
    dependencies,
    transfer,
    transactionHash,
    Math.max(0, WAIT_MS - Math.ceil(timers.monotonic() - startedAt)),
  )
  if (outcome.status === 'failed' || outcome.status === 'canceled') {
    const end = explainFailure(transfer, outcome.status)
    await finishTransfer(dependencies, transfer, { state: 'failed', ...end })
    throw failedTransfer(transfer.id, end)
  }
  if (outcome.status === 'confirmed') {
    // Another submission by a job that resumed the transfer may be the one that was executed.
    await finishTransfer(dependencies, transfer, {
      state: 'confirmed',
      transactionHash: outcome.transactionHash,
    })
    return { transferId: transfer.id, transactionHash: outcome.transactionHash, status: 'confirmed' }
  }
  const state = 'settlement_pending'
  await updateTransfer(database, transfer.id, { state, transactionHash }, dependencies.clock())
  return { transferId: transfer.id, transactionHash, status: state }
}

async function submit({ chain, log }: TransferDependencies, transfer: Transfer): Promise<Submission> {
  try {
    const submitting = chain.submit(toOperation(transfer))
    // After a timeout the job completes the transfer, so a late rejection is ignored here.
    submitting.catch(() => undefined)
    return await inTime(submitting)
  } catch (cause) {
    log.warn({ err: cause, transferId: transfer.id }, 'it is unknown whether the chain accepted a transfer')
    throw new Failure(
      'settlement_pending',
      `It is not yet known whether the chain accepted transfer ${transfer.id}; its money stays held until it is.`,
      {
        decisionId: transfer.decisionId,
        transferId: transfer.id,
        retryAfter: 5,
        hint: 'Do not send a new transfer. Repeat this call with the same idempotency key to get the outcome; without one, watch "held" of the wallet, which is settled or released within seconds.',
      },
      { cause },
    )
  }
}

function inTime(submitting: Promise<Submission>): Promise<Submission> {
  return new Promise((resolve, reject) => {
    const cancelTimeout = timers.after(WAIT_MS, () =>
      reject(new Error(`the chain did not respond within ${WAIT_MS} ms`)),
    )
    submitting.then(resolve, reject).finally(cancelTimeout)
  })
}

/**
 * Explains the failure of an operation that passed its simulation: the wallet used the nonce for another operation,
 * or it reverted, for example because other transfers used up an agent's allowance.
 */
export function explainFailure(
  { authorization }: Pick<Transfer, 'authorization'>,
  status: 'failed' | 'canceled',
): { failure: string; code: TransferFailureCode } {
  if (status === 'canceled')
    return { failure: 'its wallet executed another operation under its nonce', code: 'signature_rejected' }
  return authorization.kind === 'allowance'
    ? { failure: 'the on-chain allowance no longer sufficed', code: 'signature_rejected' }
    : { failure: 'the operation reverted', code: 'provider_unavailable' }
}

/**
 * Waits up to {@link WAIT_MS} for an outcome. An operation that is not in a block at once is recorded with its hash
 * before the wait. Timeouts and errors count as pending, because the transaction was broadcast.
 */
async function waitForOutcome(
  { chain, database, clock, log }: TransferDependencies,
  transfer: Transfer,
  transactionHash: Hex,
  waitMs: number,
): Promise<OperationOutcome> {
  try {
    const operation = toOperation(transfer)
    const now = await operationOutcome(chain, operation, 0)
    if ('transactionHash' in now) return now
    await updateTransfer(database, transfer.id, { state: 'submitted', transactionHash }, clock())
    return await operationOutcome(chain, operation, waitMs)
  } catch (err) {
    log.warn({ err, transferId: transfer.id }, 'the outcome of a transfer cannot be read yet')
    return { status: 'pending' }
  }
}

async function fail(
  dependencies: TransferDependencies,
  transfer: Transfer,
  { reason, cause }: Extract<Submission, { status: 'refused' }>,
): Promise<never> {
  const code: TransferFailureCode = cause === 'authorization' ? 'signature_rejected' : 'provider_unavailable'
  const end = { failure: reason, code }
  await finishTransfer(dependencies, transfer, { state: 'failed', ...end })
  const amount = toDecimal({ asset: transfer.token, units: transfer.units })
  dependencies.log.error(
    { transferId: transfer.id, amount, reason },
    'the chain rejected a transfer that the ledger allowed',
  )
  throw failedTransfer(transfer.id, end)
}

/**
 * Handles a reservation that has ended, or an intent used by another call. Only an intent used for something else releases the
 * money: what was sent under this decision is under way.
 */
async function notInserted(
  { database, clock }: TransferDependencies,
  { decisionId, hasIntent }: { decisionId: string; hasIntent: boolean },
): Promise<never> {
  if (!hasIntent || (await findTransferOfDecision(database, decisionId)) !== undefined)
    throw new Failure(
      'conflict',
      'The reservation of this transfer has ended, or it was sent by another call; nothing was sent now.',
      {
        hint: 'Send the request again.',
      },
    )
  await releaseSpend(database, { decisionId, at: clock() })
  throw buildUsedIntentFailure()
}
