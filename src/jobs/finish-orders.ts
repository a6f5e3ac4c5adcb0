/** Carries on what providers were asked for and did not answer: cards and virtual accounts, under the name they were ordered by. */

import { openVirtualAccount } from '../banking/open-account.ts'
import { claimAccountOrders, endAccountOrder } from '../banking/order-account.ts'
import type { Log } from '../base/log.ts'
import { type IssueParts, issueCard } from '../cards/issue-card.ts'
import { claimCardOrders, endCardOrder } from '../cards/order-card.ts'
import type { BankingProvider } from '../providers/banking.ts'
import type { Database } from '../storage/database.ts'

/** Longer than the request that made an order has it in hand. */
const QUIET_MS = 30_000
/** Providers forget an idempotency key after a day: asked later than that, they would issue twice. */
const GIVE_UP_MS = 20 * 60 * 60_000
const BATCH = 20

/** What the round needs. */
export interface OrderJobDependencies extends IssueParts {
  readonly database: Database
  readonly bankingProvider: Pick<BankingProvider, 'open'>
  readonly log: Log
}

/** One round. What cannot be finished does not keep the rest waiting. @param signal ends the round early. */
export async function finishOrders(parts: OrderJobDependencies, signal: AbortSignal): Promise<void> {
  const { database, clock } = parts
  const at = clock()
  const due = { before: new Date(at.getTime() - QUIET_MS), at, limit: BATCH }
  for (const order of await claimCardOrders(database, due)) {
    if (signal.aborted) return
    await finish(parts, order, {
      carryOn: () => issueCard(parts, order),
      giveUp: () => endCardOrder(database, { id: order.id, status: 'given_up' }),
    })
  }
  for (const order of await claimAccountOrders(database, due)) {
    if (signal.aborted) return
    await finish(parts, order, {
      carryOn: () => openVirtualAccount(parts, { kind: 'ordered', order }),
      giveUp: () => endAccountOrder(database, { id: order.id, status: 'given_up' }),
    })
  }
}

async function finish(
  { clock, log }: OrderJobDependencies,
  { id, createdAt }: { id: string; createdAt: Date },
  { carryOn, giveUp }: { carryOn: () => Promise<unknown>; giveUp: () => Promise<void> },
): Promise<void> {
  if (clock().getTime() - createdAt.getTime() > GIVE_UP_MS) {
    await giveUp()
    log.error({ orderId: id }, 'a provider never said what became of an order; look for it there')
    return
  }
  await carryOn().catch((err: unknown) => log.warn({ err, orderId: id }, 'an order cannot be finished yet'))
}
