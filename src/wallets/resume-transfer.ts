/** Carries a transfer on from wherever it was left. */
import { decimalOf } from '../money.ts'
import { finishTransfer } from './finish-transfer.ts'
import type { Sending } from './send-transfer.ts'
import { type Transfer, updateTransfer } from './store.ts'

/**
 * Asks the chain what became of a transfer and acts on it. One that the chain has never executed is submitted again: its id
 * is its nonce, so the chain executes it at most once, whoever else submits it.
 */
export async function resumeTransfer(sending: Sending, transfer: Transfer): Promise<void> {
  const { chain, database, clock, log } = sending
  const onChain = { ...transfer, transferId: transfer.id, to: transfer.destination }
  const outcome = await chain.outcomeOf(onChain, 0)
  switch (outcome.status) {
    case 'confirmed':
      log.info({ transferId: transfer.id }, 'an open transfer was confirmed')
      return finishTransfer(sending, transfer, {
        state: 'confirmed',
        transactionHash: outcome.transactionHash,
      })
    case 'failed':
      log.warn({ transferId: transfer.id }, 'an open transfer was reverted')
      return finishTransfer(sending, transfer, { state: 'failed', failure: 'the operation reverted' })
    case 'pending':
      return
    case 'absent': {
      const submission = await chain.submitTransfer(onChain)
      if (submission.status === 'submitted') {
        const { transactionHash } = submission
        return updateTransfer(
          database,
          transfer.id,
          { state: 'settlement_pending', transactionHash },
          clock(),
        )
      }
      log.error(
        {
          transferId: transfer.id,
          amount: decimalOf({ asset: transfer.token, units: transfer.units }),
          reason: submission.reason,
        },
        'the chain refused an open transfer',
      )
      return finishTransfer(sending, transfer, { state: 'failed', failure: submission.reason })
    }
  }
}
