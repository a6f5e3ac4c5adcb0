/** How an earlier transfer went, for a caller that repeats its call. */
import type { Connection } from '../../storage/database.ts'
import { findTransferOfDecision } from '../store.ts'
import { failedTransfer, intentUsed, transferNeverSubmitted } from './failed-transfer.ts'
import type { SentTransfer } from './send-transfer.ts'

/**
 * What a decision's transfer has come to.
 * @returns null while it is not known whether the chain took it.
 * @param intentId what was signed for it; null: nothing.
 * @throws Failure `provider_unavailable`, `signature_rejected` where it failed for good, as it was told the first time.
 */
export async function findRepeatedTransfer(
  { database }: { database: Connection },
  decisionId: string,
  { intentId = null }: { intentId?: string | null } = {},
): Promise<SentTransfer | null> {
  const transfer = await findTransferOfDecision(database, decisionId)
  if (transfer === undefined) return withoutRow(database, { decisionId, intentId })
  if (transfer.state === 'failed')
    throw failedTransfer(transfer.id, {
      failure: transfer.failure ?? 'it was refused',
      code: transfer.failureCode ?? 'provider_unavailable',
    })
  if (transfer.transactionHash === null) return null
  const status = transfer.state === 'confirmed' ? 'confirmed' : 'settlement_pending'
  return { transferId: transfer.id, transactionHash: transfer.transactionHash, status }
}

/** Without a row the transfer is about to be sent, or its process ended before it was and the money was given back. */
async function withoutRow(
  database: Connection,
  { decisionId, intentId }: { decisionId: string; intentId: string | null },
): Promise<null> {
  const reservation = await database.kysely
    .selectFrom('reservation')
    .select('status')
    .where('decision_id', '=', decisionId)
    .executeTakeFirst()
  if (reservation?.status === 'released') throw intentId === null ? transferNeverSubmitted() : intentUsed()
  return null
}
