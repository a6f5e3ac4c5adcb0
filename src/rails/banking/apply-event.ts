/** Applies events of the banking provider, each once. Deposit states only advance, and the last one moves money. */

import type { Screening } from '../../../policies/aml/screening.ts'
import { raiseAlarm } from '../../books/alarms/alarms.ts'
import { collectDebt } from '../../books/debts/debts.ts'
import type { AuthenticateDecisions } from '../../books/spending/authenticate.ts'
import type { NewId } from '../../core/base/ids.ts'
import type { Log } from '../../core/base/log.ts'
import { findCreditorReference } from '../../core/money/creditor-reference.ts'
import type { RateTable } from '../../core/money/rate-table.ts'
import type { BankingEvent } from '../../providers/banking/port.ts'
import type { Mint } from '../../providers/chain/port.ts'
import type { Rates } from '../../providers/rates/port.ts'
import type { Connection, Database } from '../../storage/database.ts'
import { applyPayoutEvent } from './apply-payout.ts'
import { convertDeposit } from './convert-deposit.ts'
import { creditDeposit, findDepositReview, holdDeposit } from './deposit-reviews.ts'
import {
  creditedTokens,
  parseEventAmount,
  requireCustomer,
  requireSame,
  requireUnstopped,
  toReported,
  withAlarm,
} from './judge-event.ts'
import { reverseDeposit } from './reverse-deposit.ts'
import { type SenderScreening, screenSender } from './screen-sender.ts'
import { findVirtualAccount, updateVirtualAccountStatus, type VirtualAccount } from './store.ts'

/**
 * Dependencies of event application.
 * @property isBookedHere false when the chain watcher books on-chain deliveries.
 * @property oweMint records an owed mint in the transaction of the credit.
 */
export interface BankingEventDependencies<Owed = unknown> extends SenderScreening {
  readonly database: Database
  readonly rates: Rates
  readonly chain: { readonly name: string }
  readonly chains: { readonly all: readonly { readonly name: string }[] }
  readonly newId: NewId
  readonly vouch: AuthenticateDecisions
  readonly isBookedHere: boolean
  readonly settings: { readonly dataKey: Uint8Array; readonly cardSpreadBps: number }
  readonly oweMint: (database: Connection, accountId: string, mint: Mint) => Promise<Owed>
  readonly log: Log
}

/**
 * Ranks of deposit states; a higher rank never gives way to a lower one. A refund in flight may fail: credited money
 * stays until the refund completes, and uncredited money may still be delivered.
 */
const ranks: ReadonlyMap<string, number> = new Map([
  ['funds_scheduled', 1],
  ['in_review', 2],
  ['funds_received', 3],
  ['payment_submitted', 4],
  ['refund_in_flight', 4],
  ['refund_failed', 4],
  ['payment_processed', 5],
  ['refunded', 7],
  ['returned', 7],
])
const PROCESSED = 5

/** Allowed transitions of an account's status: an out-of-order activation never reactivates an account. */
const steps: ReadonlyMap<
  string,
  { readonly from: readonly VirtualAccount['status'][]; readonly to: VirtualAccount['status'] }
> = new Map([
  ['deactivation', { from: ['pending', 'active'], to: 'deactivated' }],
  ['deactivated', { from: ['pending', 'active'], to: 'deactivated' }],
  ['reactivation', { from: ['pending', 'deactivated'], to: 'active' }],
  ['activated', { from: ['pending'], to: 'active' }],
])

/** Applies an event in one transaction with its record. @returns the mint that is owed after the commit. */
export async function applyBankingEvent<Owed>(
  parts: BankingEventDependencies<Owed>,
  event: BankingEvent,
  at: Date,
): Promise<Owed | null> {
  const table = event.kind === 'deposit' ? await parts.rates.latest(at) : null
  const isDue = event.kind === 'deposit' && ranks.get(event.state) === PROCESSED && parts.isBookedHere
  const screened = await screenSender(parts, isDue ? event.sender : null)
  const apply = async (connection: Connection) => {
    const { eventId: id, type } = event
    const noted = await connection.kysely
      .insertInto('webhook_event')
      .values({ provider: 'bridge', id, type, received_at: at })
      .onConflict((conflict) => conflict.doNothing())
      .returning('id')
      .executeTakeFirst()
    if (noted === undefined) return null
    if (event.kind === 'payout') await applyPayoutEvent({ ...parts, database: connection }, event, at)
    if (event.virtualAccount === null) return null
    const account = await findVirtualAccount(connection, { providerId: event.virtualAccount })
    if (account === undefined) return null
    const step = event.kind === 'account' ? steps.get(event.state) : undefined
    if (step !== undefined) await updateVirtualAccountStatus(connection, { id: account.id, ...step })
    if (event.kind !== 'deposit' || table === null) return null
    const mint = await applyDeposit({ ...parts, connection, table, screened }, account, event, at)
    return mint === null ? null : parts.oweMint(connection, account.accountId, mint)
  }
  return withAlarm(parts, { event, at }, () => parts.database.transaction(apply))
}

async function applyDeposit(
  {
    connection,
    table,
    screened,
    ...parts
  }: BankingEventDependencies & { connection: Connection; table: RateTable; screened: Screening },
  account: VirtualAccount,
  event: BankingEvent,
  at: Date,
): Promise<Mint | null> {
  const { objectId: id, state } = event
  const { isBookedHere, log } = parts
  const rank = ranks.get(state) ?? 0
  if (state === 'refund_failed') log.error({ depositId: id }, 'the bank could not refund a deposit')
  await connection.kysely
    .insertInto('deposit')
    .values({
      id,
      virtual_account_id: account.id,
      account_id: account.accountId,
      state,
      rank: 0,
      created_at: at,
      updated_at: at,
    })
    .onConflict((conflict) => conflict.doNothing())
    .execute()
  const before = await connection.kysely
    .selectFrom('deposit')
    .selectAll()
    .where('id', '=', id)
    .forUpdate()
    .executeTakeFirstOrThrow()
  if (before.virtual_account_id !== account.id) {
    const alarm = {
      domain: 'banking',
      objectId: id,
      reason: 'another_account',
      reported: toReported(event),
    } as const
    await raiseAlarm({ database: connection, log }, { ...alarm, at })
    return null
  }
  if (rank <= before.rank) return null
  const reference = event.memo === null ? null : findCreditorReference(event.memo)
  if (reference !== null && before.payer_reference === null)
    await connection.kysely
      .updateTable('deposit')
      .set({ payer_reference: reference })
      .where('id', '=', id)
      .execute()
  await requireUnstopped(connection, id)
  requireCustomer(event, account)
  const { destination } = account
  const isBooked = isBookedHere || destination === null
  // A provider that delivers on the chain reports amounts before and after fees and in tokens, so they are not
  // booked.
  const hasAmount = isBooked && (event.amount !== null || rank === PROCESSED)
  const tokens = hasAmount ? creditedTokens(event, account, before.said_units) : null
  const cash = hasAmount && tokens === null ? parseEventAmount(event, account.currency) : null
  if (cash !== null) requireSame(cash, before.said_units)
  const change = connection.kysely
    .updateTable('deposit')
    .set({ state, rank, updated_at: at, said_units: cash?.units ?? before.said_units })
    .where('id', '=', id)
  const said = tokens ?? cash
  if (rank === PROCESSED && said !== null) {
    const stopped = await findDepositReview(connection, id)
    if (stopped === 'open' || stopped === 'blocked') return null
    if (screened.result !== 'clear' && stopped === undefined) {
      const held = { depositId: id, accountId: account.accountId, money: said, sender: event.sender ?? '' }
      await holdDeposit({ ...parts, database: connection }, { ...held, screening: screened, at })
      return null
    }
    const money = convertDeposit(said, account, table)
    await change.execute()
    return creditDeposit(connection, account, { id, money, at })
  }
  await change.execute()
  if (rank <= PROCESSED || before.units === null || before.said_units === null) return null
  // The bank recovers the amount it paid in, regardless of its current value or form.
  const taken = { asset: account.currency, units: before.said_units }
  const database = connection
  const debt = await reverseDeposit({ database, log }, { id, accountId: account.accountId, money: taken, at })
  if (debt !== null) await collectDebt({ ...parts, database }, debt, { table, at })
  return null
}
