/** Carries a transfer on from wherever it was left. */
import { type OperationOutcome, operationOutcome } from '../../evidence/operation-outcome.ts'
import { operationOf, type Transfer, updateTransfer } from '../store.ts'
import { finishTransfer } from './finish-transfer.ts'
import { failureOf, type TransferDependencies } from './send-transfer.ts'
import { requireAuthentic } from './transfer-mac.ts'

/** How long one that was submitted again is waited for, before the next round asks once more. */
const WAIT_MS = 3000

/** How far the chain's clock may be behind ours: a transfer is given up only so long after its time. */
const CLOCKS_APART_MS = 60_000

/**
 * Asks the chain what became of a transfer and acts on it. One that the chain has never executed is submitted again: its id
 * is its nonce, so the chain executes it at most once, whoever else submits it. Once its time is over the chain never will.
 */
export async function resumeTransfer(sending: TransferDependencies, transfer: Transfer): Promise<void> {
  const { chain, log, clock } = sending
  const operation = operationOf(transfer)
  const isOver = clock().getTime() > transfer.validUntil.getTime() + CLOCKS_APART_MS
  const known = await operationOutcome(chain, operation, 0)
  if (known.status !== 'absent') return act(sending, transfer, known)
  if (isOver)
    return finishTransfer(sending, transfer, {
      state: 'failed',
      failure: 'the chain did not take it in time',
    })
  requireAuthentic(sending.settings.dataKey, transfer)
  const submission = await chain.submit(operation)
  if (submission.status === 'submitted') {
    const { transactionHash } = submission
    await updateTransfer(
      sending.database,
      transfer.id,
      { state: 'settlement_pending', transactionHash },
      sending.clock(),
    )
    return act(sending, transfer, await operationOutcome(chain, operation, WAIT_MS))
  }
  // An earlier broadcast may still be executed, whatever a node says of it now: its money stays held until its time is over.
  log.error({ transferId: transfer.id, reason: submission.reason }, 'the chain refused an open transfer')
}

async function act(
  sending: TransferDependencies,
  transfer: Transfer,
  outcome: OperationOutcome,
): Promise<void> {
  const { log } = sending
  if (outcome.status === 'confirmed') {
    log.info({ transferId: transfer.id }, 'an open transfer was confirmed')
    return finishTransfer(sending, transfer, { state: 'confirmed', transactionHash: outcome.transactionHash })
  }
  if (outcome.status === 'failed' || outcome.status === 'canceled') {
    const { status } = outcome
    log.warn({ transferId: transfer.id, status }, 'an open transfer did not happen')
    return finishTransfer(sending, transfer, { state: 'failed', ...failureOf(transfer, status) })
  }
}
