/**
 * Finishes card work: applies out-of-order messages, expires stale approvals, ends cards for one purchase, and sends
 * stablecoins to the treasury.
 */

import { escrowPlace } from '../../books/ledger/accounts.ts'
import type { Log } from '../../core/base/log.ts'
import type { CardProcessor } from '../../providers/card-processor/port.ts'
import { type Address, CARDS_AGENT, type Chain } from '../../providers/chain/port.ts'
import {
  applyTransaction,
  type CardTransactionDependencies,
  closeAuthorization,
} from '../../rails/cards/apply-transaction.ts'
import { deleteOutOfOrderMessage, dueOutOfOrderMessages } from '../../rails/cards/out-of-order-messages.ts'
import {
  endSettlements,
  retrySettlements,
  staleAuthorizations,
  unsentSettlements,
} from '../../rails/cards/settlements.ts'
import { endSingleUses } from '../../rails/cards/single-use.ts'
import { keepEscrows } from '../../rails/wallets/escrow/escrow.ts'
import { sendTransfer } from '../../rails/wallets/transfers/send-transfer.ts'
import type { Database } from '../../storage/database.ts'

const BATCH = 100
/** Longer than a processor's retry interval. */
const OUT_OF_ORDER_MS = 10 * 60_000
/** Card networks expire approvals after about a week. */
const APPROVAL_MS = 8 * 24 * 60 * 60_000

const byOwner = { kind: 'gateway' } as const
const byAllowance = { kind: 'allowance', agentId: CARDS_AGENT } as const

export interface CardSettlementDependencies extends CardTransactionDependencies {
  readonly database: Database
  readonly chain: Chain
  readonly chains: { readonly all: readonly Chain[] }
  readonly cardProcessor: Pick<CardProcessor, 'read'>
  readonly settings: CardTransactionDependencies['settings'] & {
    readonly cardTreasury: Address
    readonly dataKey: Uint8Array
  }
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
  const unsent = await unsentSettlements(parts, { at: parts.clock(), limit: BATCH })
  const send = async ({ isWalletOurs, place, ...settlement }: (typeof unsent)[number]) => {
    const chain = parts.chains.all.find(({ name }) => place === name || place === escrowPlace(name))
    // A chain that is not connected is waited for.
    if (chain === undefined) return
    const isEscrow = place !== chain.name
    await sendTransfer(
      { ...parts, chain },
      {
        authorizedBy: { signer: 'sandbox', authorization: isEscrow || isWalletOurs ? byOwner : byAllowance },
        ...settlement,
        ...(isEscrow && { payer: 'escrow' }),
        destination: parts.settings.cardTreasury,
        at: parts.clock(),
      },
    ).catch((err: unknown) => logUnsent(log, settlement.decisionId, err))
  }
  for (let at = 0; at < unsent.length && !signal.aborted; at += 16)
    await Promise.all(unsent.slice(at, at + 16).map(send))
  const moved = await keepEscrows(parts, signal)
  return messages + stale.length + ended + owed.length + unsent.length + moved
}

/** Another gateway may have sent it; settle-pending tracks every sent transfer. */
function logUnsent(log: Log, decisionId: string, err: unknown): void {
  log.warn({ err, decisionId }, 'sending a card settlement failed')
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
