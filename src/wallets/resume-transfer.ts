/** Carries a transfer on from wherever it was left. */
import type { TransferOutcome } from '../providers/chain.ts'
import { finishTransfer } from './finish-transfer.ts'
import type { Sending } from './send-transfer.ts'
import { type Transfer, updateTransfer } from './store.ts'

/** How long one that was submitted again is waited for, before the next round asks once more. */
const WAIT_MS = 3000

/**
 * Asks the chain what became of a transfer and acts on it. One that the chain has never executed is submitted again: its id
 * is its nonce, so the chain executes it at most once, whoever else submits it.
 */
export async function resumeTransfer(sending: Sending, transfer: Transfer): Promise<void> {
  const { chain, log } = sending
  const onChain = { ...transfer, transferId: transfer.id, to: transfer.destination }
  const known = await chain.outcomeOf(onChain, 0)
  if (known.status !== 'absent') return act(sending, transfer, known)
  const submission = await chain.submitTransfer(onChain)
  if (submission.status === 'submitted') {
    const { transactionHash } = submission
    await updateTransfer(
      sending.database,
      transfer.id,
      { state: 'settlement_pending', transactionHash },
      sending.clock(),
    )
    return act(sending, transfer, await chain.outcomeOf(onChain, WAIT_MS))
  }
  log.error({ transferId: transfer.id, reason: submission.reason }, 'the chain refused an open transfer')
  // One that was broadcast may still be executed, whatever a node says of it now: its money stays held.
  if (transfer.transactionHash !== null) return
  return finishTransfer(sending, transfer, { state: 'failed', failure: submission.reason })
}

async function act(sending: Sending, transfer: Transfer, outcome: TransferOutcome): Promise<void> {
  const { log } = sending
  if (outcome.status === 'confirmed') {
    log.info({ transferId: transfer.id }, 'an open transfer was confirmed')
    return finishTransfer(sending, transfer, { state: 'confirmed', transactionHash: outcome.transactionHash })
  }
  if (outcome.status === 'failed') {
    log.warn({ transferId: transfer.id }, 'an open transfer was reverted')
    return finishTransfer(sending, transfer, { state: 'failed', failure: 'the operation reverted' })
  }
}
