/** Cash between the firm's account and a person's at the broker: to a buy, and back. */
import type { Clock } from '../../core/base/clock.ts'
import type { NewId } from '../../core/base/ids.ts'
import type { BrokerageAccounts, CashTransferReport } from '../../providers/broker/accounts.ts'
import type { Broker } from '../../providers/broker/port.ts'
import type { Connection, Database } from '../../storage/database.ts'
import {
  findReturn,
  hasReturnSince,
  insertTransfer,
  type KeptTransfer,
  lockBrokerageAccount,
  updateTransfer,
} from './brokerage-transfers.ts'
import type { Order } from './order.ts'

interface Funding {
  readonly database: Database
  readonly broker: Pick<Broker, 'accounts'>
  readonly newId: NewId
  readonly clock: Clock
}

/**
 * Moves the maximum cost of a buy to the person's account, once: the transfer has the order's id. Safe to repeat.
 * @throws Failure `provider_unavailable` when it is unknown whether it moved.
 */
export async function fundOrder(
  { database, broker: { accounts }, clock }: Omit<Funding, 'newId'>,
  { id, accountId, notional }: Order,
  brokerageAccount: string,
): Promise<CashTransferReport['status']> {
  if (accounts === null) throw new Error('the broker keeps no accounts of persons')
  const kept = await insertTransfer(database, { id, accountId, orderId: id, cents: notional, at: clock() })
  return resumeTransfer({ database, accounts }, kept, brokerageAccount)
}

/** Sends a transfer, or reads what became of it, and stores that. */
async function resumeTransfer(
  { database, accounts }: { database: Connection; accounts: BrokerageAccounts },
  { id, orderId, cents, status, providerId }: KeptTransfer,
  account: string,
): Promise<CashTransferReport['status']> {
  if (status === 'executed' || status === 'refused') return status
  const direction = orderId === null ? 'to_firm' : 'to_person'
  const report =
    providerId === null
      ? await accounts.transfer({ id, account, direction, cents })
      : await accounts.readTransfer(providerId)
  await updateTransfer(database, id, report)
  return report.status
}

/** A buy this recent may still be on its way to the broker, by another gateway's clock. */
const RECENT_MS = 60_000

/**
 * Sends settled cash back to the firm's account: what a buy did not use, the proceeds of sells, and dividends. One
 * transfer at a time. The cash is read before the last check for buys: a buy is paid for after its row is written, so
 * none of its money can be part of that cash.
 */
export async function returnCash(
  { database, broker: { accounts }, newId, clock }: Funding,
  { accountId, brokerageAccount }: { accountId: string; brokerageAccount: string },
): Promise<void> {
  if (accounts === null) return
  const open = await findReturn(database, accountId)
  if (open !== undefined) {
    await resumeTransfer({ database, accounts }, open, brokerageAccount)
    return
  }
  const startedAt = clock()
  if (await hasBuyInProgress(database, { accountId, startedAt })) return
  const cents = await accounts.withdrawableCash(brokerageAccount)
  if (cents === 0n) return
  const kept = await database.transaction(async (connection) => {
    await lockBrokerageAccount(connection, accountId)
    const isOvertaken =
      (await hasReturnSince(connection, { accountId, startedAt })) ||
      (await hasBuyInProgress(connection, { accountId, startedAt }))
    const id = newId('ret', startedAt)
    return isOvertaken
      ? null
      : insertTransfer(connection, { id, accountId, orderId: null, cents, at: startedAt })
  })
  if (kept !== null) await resumeTransfer({ database, accounts }, kept, brokerageAccount)
}

/** Checks for a buy that is open or was placed lately. */
async function hasBuyInProgress(
  { kysely }: Connection,
  { accountId, startedAt }: { accountId: string; startedAt: Date },
): Promise<boolean> {
  const row = await kysely
    .selectFrom('investing_order')
    .select('id')
    .where('account_id', '=', accountId)
    .where('side', '=', 'buy')
    .where((where) =>
      where.or([
        where('status', 'in', ['new', 'accepted', 'partially_filled']),
        where('submitted_at', '>=', new Date(startedAt.getTime() - RECENT_MS)),
      ]),
    )
    .executeTakeFirst()
  return row !== undefined
}
