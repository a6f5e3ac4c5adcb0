/** Completion of a transfer in the ledger and in its row. */

import type { ReleaseVerdict } from '../../../books/spending/release.ts'
import type { SettleVerdict } from '../../../books/spending/settle.ts'
import type { Clock } from '../../../core/base/clock.ts'
import type { Log } from '../../../core/base/log.ts'
import type { Chain, Hex } from '../../../providers/chain/port.ts'
import type { Database, Statement } from '../../../storage/database.ts'
import type { Transfer, TransferFailureCode } from '../store.ts'

export type TransferOutcome =
  | { readonly state: 'confirmed'; readonly transactionHash: Hex }
  | { readonly state: 'failed'; readonly failure: string; readonly code?: TransferFailureCode }

const statement: Statement = {
  name: 'transfer_finish_batch',
  text: 'select verdict from transfer_finish_batch($1)',
}

/**
 * Settles or releases a transfer's money and completes its row, in one round trip. Idempotent. The row follows the
 * ledger: if the money was already resolved the other way, the row records that and an error is logged. Money sent to
 * one of our wallets is credited to it immediately; any other money leaves the books.
 */
export async function finishTransfer(
  { database, chain, clock, log }: { database: Database; chain: Pick<Chain, 'name'>; clock: Clock; log: Log },
  transfer: Transfer,
  outcome: TransferOutcome,
): Promise<void> {
  const { id, decisionId, fundingId, destination, wallet } = transfer
  const isConfirmed = outcome.state === 'confirmed'
  const { verdict } = await database.gather<{ verdict: SettleVerdict | ReleaseVerdict }>(
    statement,
    {
      transfer: id,
      decision: fundingId ?? decisionId,
      chain: chain.name,
      destination,
      is_confirmed: isConfirmed,
      hash: isConfirmed ? outcome.transactionHash : null,
      failure: isConfirmed ? null : outcome.failure,
      code: isConfirmed ? null : (outcome.code ?? null),
      at: clock(),
    },
    wallet.accountId,
  )
  const state = verdict === 'settled' || verdict === 'already_settled' ? 'confirmed' : 'failed'
  if (state !== outcome.state)
    log.error(
      { transferId: id, decisionId, verdict, chain: outcome.state },
      'the chain and the ledger disagree on a transfer',
    )
}
