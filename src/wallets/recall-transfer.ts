/** How an earlier transfer went, for a caller that repeats its call. */
import type { Connection } from '../storage/database.ts'
import { failedTransfer, type SentTransfer } from './send-transfer.ts'
import { findTransferOfDecision } from './store.ts'

/**
 * What a decision's transfer has come to.
 * @returns null while it is not known whether the chain took it.
 * @throws Failure `provider_unavailable` where it failed for good.
 */
export async function recallTransfer(
  { database }: { database: Connection },
  decisionId: string,
): Promise<SentTransfer | null> {
  const transfer = await findTransferOfDecision(database, decisionId)
  if (transfer === undefined) return neverSent(database, decisionId)
  if (transfer.state === 'failed') throw failedTransfer(transfer.id, transfer.failure ?? 'it was refused')
  if (transfer.transactionHash === null) return null
  const status = transfer.state === 'confirmed' ? 'confirmed' : 'settlement_pending'
  return { transferId: transfer.id, transactionHash: transfer.transactionHash, status }
}

/** Without a row the transfer is about to be sent, or its process ended before it was and the money was given back. */
async function neverSent(database: Connection, decisionId: string): Promise<null> {
  const reservation = await database.kysely
    .selectFrom('reservation')
    .select('status')
    .where('decision_id', '=', decisionId)
    .executeTakeFirst()
  if (reservation?.status === 'released') throw failedTransfer(decisionId, 'it was never sent')
  return null
}
