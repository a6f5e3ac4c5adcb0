/** The end of a transfer: the ledger and the transfer's row move together, once. */
import type { Clock } from '../clock.ts'
import { available, external } from '../ledger/accounts.ts'
import type { Chain, Hex } from '../providers/chain.ts'
import { releaseSpend } from '../spending/release.ts'
import { settleSpend } from '../spending/settle.ts'
import type { Database } from '../storage/database.ts'
import { findWalletOwner, type Transfer, updateTransfer } from './store.ts'

/** How a transfer ended. */
export type TransferEnd =
  | { readonly state: 'confirmed'; readonly transactionHash: Hex }
  | { readonly state: 'failed'; readonly failure: string }

/**
 * Settles or releases a transfer's money and ends its row, in one transaction. Doing it twice changes nothing.
 * Money that went to a wallet of ours is that wallet's at once; any other has left the books.
 */
export async function finishTransfer(
  { database, chain, clock }: { database: Database; chain: Pick<Chain, 'name'>; clock: Clock },
  transfer: Transfer,
  end: TransferEnd,
): Promise<void> {
  const at = clock()
  const receiver =
    end.state === 'confirmed' ? await findWalletOwner(database, transfer.destination) : undefined
  const destination = receiver === undefined ? external(chain.name) : available(receiver, chain.name)
  await database.transaction(async (connection) => {
    const { decisionId } = transfer
    if (end.state === 'confirmed') await settleSpend(connection, { decisionId, destination, at })
    else await releaseSpend(connection, { decisionId, at })
    await updateTransfer(connection, transfer.id, end, at)
  })
}
