/** Finishes card and virtual account orders that providers did not answer, under their original idempotency keys. */

import type { Log } from '../../core/base/log.ts'
import type { BankingProvider } from '../../providers/banking/port.ts'
import { openVirtualAccount } from '../../rails/banking/open-account.ts'
import { claimAccountOrders, endAccountOrder } from '../../rails/banking/order-account.ts'
import { type IssueParts, issueCard } from '../../rails/cards/issue-card.ts'
import {
  type CardOrder,
  claimCardOrders,
  endCardOrder,
  forgetCardOrder,
} from '../../rails/cards/order-card.ts'
import { findReserve, releaseReserve } from '../../rails/cards/reserve-amount.ts'
import type { Database } from '../../storage/database.ts'

/** Longer than the request that placed the order takes. */
const QUIET_MS = 30_000
/** Providers keep idempotency keys for a day; a later retry would issue twice. */
const GIVE_UP_MS = 20 * 60 * 60_000
const BATCH = 20

export interface OrderJobDependencies extends IssueParts {
  readonly database: Database
  readonly bankingProvider: Pick<BankingProvider, 'open'>
  readonly log: Log
}

/** Runs one round. A failing item does not block the others. @param signal stops the round early. */
export async function finishOrders(parts: OrderJobDependencies, signal: AbortSignal): Promise<number> {
  const { database, clock } = parts
  const at = clock()
  const due = { before: new Date(at.getTime() - QUIET_MS), at, limit: BATCH }
  const cards = await claimCardOrders(database, due)
  for (const order of cards) {
    if (signal.aborted) return cards.length
    await finish(parts, order, {
      carryOn: () => finishCard(parts, order),
      giveUp: async () => {
        if (order.wanted.singleUse !== null) await releaseReserve(database, { cardId: order.id, at })
        await endCardOrder(database, { id: order.id, status: 'given_up' })
      },
    })
  }
  const accounts = await claimAccountOrders(database, due)
  for (const order of accounts) {
    if (signal.aborted) break
    await finish(parts, order, {
      carryOn: () => openVirtualAccount(parts, { kind: 'ordered', order }),
      giveUp: () => endAccountOrder(database, { id: order.id, status: 'given_up' }),
    })
  }
  return cards.length + accounts.length
}

/** Issues an ordered card. Without the amount that it is for, a card for one purchase is not wanted any more. */
async function finishCard(parts: OrderJobDependencies, order: CardOrder): Promise<void> {
  const isForOne = order.wanted.singleUse !== null
  if (isForOne && (await findReserve(parts.database, order.id))?.reason !== 'approved')
    await forgetCardOrder(parts.database, order.id)
  else await issueCard(parts, order)
}

async function finish(
  { clock, log }: OrderJobDependencies,
  { id, createdAt }: { id: string; createdAt: Date },
  { carryOn: resume, giveUp }: { carryOn: () => Promise<unknown>; giveUp: () => Promise<void> },
): Promise<void> {
  if (clock().getTime() - createdAt.getTime() > GIVE_UP_MS) {
    await giveUp()
    log.error({ orderId: id }, 'gave up on an order without an answer; check it at the provider')
    return
  }
  await resume().catch((err: unknown) => log.warn({ err, orderId: id }, 'finishing an order failed'))
}
