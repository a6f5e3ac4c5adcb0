/** The end of a transfer, in the ledger and in its row. */
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
 * Settles or releases a transfer's money and ends its row. Doing it twice changes nothing, whoever does it.
 * Money that went to a wallet of ours is that wallet's at once; any other has left the books.
 */
export async function finishTransfer(
  { database, chain, clock }: { database: Database; chain: Pick<Chain, 'name'>; clock: Clock },
  transfer: Transfer,
  end: TransferEnd,
): Promise<void> {
  const { id, decisionId } = transfer
  const at = clock()
  if (end.state === 'failed') {
    // Together or not at all: a row that stays open would be submitted again, without the money that was given back.
    return database.transaction(async (connection) => {
      await releaseSpend(connection, { decisionId, at })
      await updateTransfer(connection, id, end, at)
    })
  }
  const receiver = await findWalletOwner(database, transfer.destination)
  const destination = receiver === undefined ? external(chain.name) : available(receiver, chain.name)
  // A crash between the two leaves an open row, and whoever resumes it finds the money settled.
  await settleSpend(database, { decisionId, destination, at })
  await updateTransfer(database, id, end, at)
}
