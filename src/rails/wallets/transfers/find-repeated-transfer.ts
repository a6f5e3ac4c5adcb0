/** Outcome of an earlier transfer, for a repeated call. */
import type { Connection } from '../../../storage/database.ts'
import { findTransferOfDecision } from '../store.ts'
import { buildUsedIntentFailure, failedTransfer, transferNeverSubmitted } from './failed-transfer.ts'
import type { SentTransfer } from './send-transfer.ts'

/**
 * Finds the outcome of a decision's transfer.
 * @param intentId signed intent; null if none.
 * @returns null while it is unknown whether the chain accepted it.
 * @throws Failure `provider_unavailable`, `signature_rejected` when it failed permanently, as on the first call.
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

/** Without a row, the transfer is about to be sent, or its process ended first and the money was released. */
async function withoutRow(
  database: Connection,
  { decisionId, intentId }: { decisionId: string; intentId: string | null },
): Promise<null> {
  const reservation = await database.kysely
    .selectFrom('reservation')
    .select('status')
    .where('decision_id', '=', decisionId)
    .executeTakeFirst()
  if (reservation?.status === 'released')
    throw intentId === null ? transferNeverSubmitted() : buildUsedIntentFailure()
  return null
}
