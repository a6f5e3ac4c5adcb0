/**
 * Finishes card work: applies out-of-order messages, expires stale approvals, ends cards for one purchase, and records the ends of
 * settlements.
 */

import type { CardProcessor } from '../../providers/card-processor/port.ts'
import {
  applyTransaction,
  type CardTransactionDependencies,
  closeAuthorization,
} from '../../rails/cards/apply-transaction.ts'
import { deleteOutOfOrderMessage, dueOutOfOrderMessages } from '../../rails/cards/out-of-order-messages.ts'
import { endSettlements, retrySettlements, staleAuthorizations } from '../../rails/cards/settlements.ts'
import { endSingleUses } from '../../rails/cards/single-use.ts'
import type { Database } from '../../storage/database.ts'

const BATCH = 100
/** Longer than a processor's retry interval. */
const OUT_OF_ORDER_MS = 10 * 60_000
/** Card networks expire approvals after about a week. */
const APPROVAL_MS = 8 * 24 * 60 * 60_000

export interface CardSettlementDependencies extends CardTransactionDependencies {
  readonly database: Database
  readonly cardProcessor: Pick<CardProcessor, 'read'>
  readonly settings: CardTransactionDependencies['settings'] & { readonly dataKey: Uint8Array }
}

/** Runs one round. A failing item does not block the others. @param signal stops the round early. */
export async function settleCards(parts: CardSettlementDependencies, signal: AbortSignal): Promise<number> {
  const { log } = parts
  const messages = await applyOutOfOrderMessages(parts, signal)
  const before = new Date(parts.clock().getTime() - APPROVAL_MS)
  const stale = await staleAuthorizations(parts.database, { before, limit: BATCH })
  for (const token of stale) await closeAuthorization(parts, { token, status: 'expired', at: parts.clock() })
  const ended = await endSingleUses(parts.database, { accountId: null, at: parts.clock() })
  const owed = await endSettlements(parts.database, parts.clock())
  if (owed.length > 0)
    log.error(
      { settlements: owed },
      'the chain keeps refusing card settlements; their value is booked as debt',
    )
  await retrySettlements(parts, parts.clock())
  return messages + stale.length + ended + owed.length
}

async function applyOutOfOrderMessages(
  parts: CardSettlementDependencies,
  signal: AbortSignal,
): Promise<number> {
  const before = new Date(parts.clock().getTime() - OUT_OF_ORDER_MS)
  const due = await dueOutOfOrderMessages(parts.database, {
    before,
    limit: BATCH,
  })
  for (const { webhookId, message, isTakenAsItIs } of due) {
    if (signal.aborted) break
    await applyOne(parts, { message, isTakenAsItIs }).then(
      (isDone) => (isDone ? deleteOutOfOrderMessage(parts.database, webhookId) : undefined),
      (err: unknown) => parts.log.error({ err, webhookId }, 'applying an out-of-order message failed'),
    )
  }
  return due.length
}

async function applyOne(
  parts: CardSettlementDependencies,
  { message, isTakenAsItIs }: { message: unknown; isTakenAsItIs: boolean },
): Promise<boolean> {
  const transaction = parts.cardProcessor.read(message)
  if (transaction.kind !== 'transaction') return true
  const outcome = await applyTransaction(parts, transaction, { isForcePosted: isTakenAsItIs })
  return outcome !== 'early'
}
