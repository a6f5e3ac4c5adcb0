/** Completion of a transfer in the ledger and in its row. */
import type { Clock } from '../../base/clock.ts'
import type { Log } from '../../base/log.ts'
import { available, external } from '../../ledger/accounts.ts'
import type { Chain, Hex } from '../../providers/chain.ts'
import { releaseSpend } from '../../spending/release.ts'
import { settleSpend } from '../../spending/settle.ts'
import type { Database } from '../../storage/database.ts'
import { type FailureCode, findWalletOwner, type Transfer, updateTransfer } from '../store.ts'

export type TransferOutcome =
  | { readonly state: 'confirmed'; readonly transactionHash: Hex }
  | { readonly state: 'failed'; readonly failure: string; readonly code?: FailureCode }

/**
 * Settles or releases a transfer's money and completes its row, in one transaction. Idempotent. The row follows the
 * ledger: if the money was already resolved the other way, the row records that and an error is logged. Money sent to
 * one of our wallets is credited to it immediately; any other money leaves the books.
 */
export async function finishTransfer(
  { database, chain, clock, log }: { database: Database; chain: Pick<Chain, 'name'>; clock: Clock; log: Log },
  transfer: Transfer,
  outcome: TransferOutcome,
): Promise<void> {
  const { id, decisionId } = transfer
  const at = clock()
  const receiver =
    outcome.state === 'confirmed' ? await findWalletOwner(database, transfer.destination) : undefined
  const destination = receiver === undefined ? external(chain.name) : available(receiver, chain.name)
  await database.transaction(async (connection) => {
    const verdict =
      outcome.state === 'confirmed'
        ? await settleSpend(connection, { decisionId, destination, at })
        : await releaseSpend(connection, { decisionId, at })
    const state = verdict === 'settled' || verdict === 'already_settled' ? 'confirmed' : 'failed'
    if (state !== outcome.state)
      log.error(
        { transferId: id, decisionId, verdict, chain: outcome.state },
        'the chain and the ledger disagree on a transfer',
      )
    await updateTransfer(connection, id, { ...outcome, state }, at)
  })
}
