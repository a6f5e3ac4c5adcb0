/** Finishes what cards leave behind: messages that came too early, approvals that nobody claims, and stablecoins for the treasury. */

import type { Log } from '../base/log.ts'
import {
  applyTransaction,
  type CardTransactionDependencies,
  closeAuthorization,
} from '../cards/apply-transaction.ts'
import { deleteOutOfOrderMessage, dueOutOfOrderMessages } from '../cards/out-of-order-messages.ts'
import {
  endSettlements,
  retrySettlements,
  staleAuthorizations,
  unsentSettlements,
} from '../cards/settlements.ts'
import type { CardProcessor } from '../providers/card-processor.ts'
import { type Address, CARDS_AGENT, type Chain } from '../providers/chain.ts'
import type { Database } from '../storage/database.ts'
import { sendTransfer } from '../wallets/transfers/send-transfer.ts'

const BATCH = 100
/** Longer than a processor takes to ask us again. */
const EARLY_MS = 10 * 60_000
/** Networks let an approval live for about a week. */
const APPROVAL_MS = 8 * 24 * 60 * 60_000

const byOwner = { kind: 'gateway' } as const
const byAllowance = { kind: 'allowance', agentId: CARDS_AGENT } as const

/** What the round needs. */
export interface CardSettlementDependencies extends CardTransactionDependencies {
  readonly database: Database
  readonly chain: Chain
  readonly cardProcessor: Pick<CardProcessor, 'read'>
  readonly settings: { readonly cardTreasury: Address; readonly dataKey: Uint8Array }
}

/** One round. What cannot be finished does not keep the rest waiting. @param signal ends the round early. */
export async function settleCards(parts: CardSettlementDependencies, signal: AbortSignal): Promise<void> {
  const { log } = parts
  await applyEarly(parts, signal)
  const before = new Date(parts.clock().getTime() - APPROVAL_MS)
  for (const token of await staleAuthorizations(parts.database, { before, limit: BATCH }))
    await closeAuthorization(parts, { token, status: 'expired', at: parts.clock() })
  const owed = await endSettlements(parts.database, parts.clock())
  if (owed.length > 0)
    log.error(
      { settlements: owed },
      'the chain goes on refusing card settlements: their owners owe what they are worth',
    )
  await retrySettlements(parts, parts.clock())
  const unsent = await unsentSettlements(parts, { at: parts.clock(), limit: BATCH })
  const send = ({ isWalletOurs, ...settlement }: (typeof unsent)[number]) =>
    sendTransfer(parts, {
      authorizedBy: { signer: 'sandbox', authorization: isWalletOurs ? byOwner : byAllowance },
      ...settlement,
      destination: parts.settings.cardTreasury,
      at: parts.clock(),
    }).catch((err: unknown) => tellUnsent(log, settlement.decisionId, err))
  for (let at = 0; at < unsent.length && !signal.aborted; at += 16)
    await Promise.all(unsent.slice(at, at + 16).map(send))
}

/** Another gateway may have sent it, and settle-pending follows whatever was sent. */
function tellUnsent(log: Log, decisionId: string, err: unknown): void {
  log.warn({ err, decisionId }, 'a card settlement was not confirmed by this round')
}

async function applyEarly(parts: CardSettlementDependencies, signal: AbortSignal): Promise<void> {
  const before = new Date(parts.clock().getTime() - EARLY_MS)
  for (const { webhookId, message, isTakenAsItIs } of await dueOutOfOrderMessages(parts.database, {
    before,
    limit: BATCH,
  })) {
    if (signal.aborted) return
    await applyOne(parts, { message, isTakenAsItIs }).then(
      () => deleteOutOfOrderMessage(parts.database, webhookId),
      (err: unknown) => parts.log.error({ err, webhookId }, 'an early message cannot be applied yet'),
    )
  }
}

async function applyOne(
  parts: CardSettlementDependencies,
  { message, isTakenAsItIs }: { message: unknown; isTakenAsItIs: boolean },
): Promise<void> {
  const transaction = parts.cardProcessor.read(message)
  if (transaction.kind === 'transaction') await applyTransaction(parts, transaction, { isTakenAsItIs })
}
