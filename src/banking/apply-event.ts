/** What the banking provider tells, applied once: states only go up, and the last one moves money. */
import { convertDown, crossRateDown } from '../cross-rate.ts'
import { currencyOf } from '../currencies.ts'
import { Failure } from '../failure.ts'
import { available, external } from '../ledger/accounts.ts'
import { post } from '../ledger/post.ts'
import type { Log } from '../log.ts'
import { assetDecimals, decimalAmount, type Money, misfitOf, moneyOf } from '../money.ts'
import type { BankingEvent } from '../providers/banking.ts'
import type { Mint } from '../providers/chain.ts'
import type { Rates } from '../providers/rates.ts'
import type { Connection, Database } from '../storage/database.ts'
import { applyPayout } from './apply-payout.ts'
import { findVirtualAccount, moveVirtualAccount, type VirtualAccount } from './store.ts'
import { BANK, takeBack } from './take-back.ts'

/**
 * What applying needs. @property isBookedHere false where the chain's own watch books what is delivered there.
 * @property oweMint writes down, in the transaction of the credit, that it is to be put on the chain.
 */
export interface BankApplying<Owed = unknown> {
  readonly database: Database
  readonly rates: Rates
  readonly isBookedHere: boolean
  readonly oweMint: (database: Connection, accountId: string, mint: Mint) => Promise<Owed>
  readonly log: Log
}

/**
 * Where a deposit stands; a higher rank never gives way to a lower one. A refund under way may fail: what was credited stays
 * until the money is gone, and what was not may still be delivered.
 */
const ranks: Readonly<Record<string, number>> = {
  funds_scheduled: 1,
  in_review: 2,
  funds_received: 3,
  payment_submitted: 4,
  refund_in_flight: 4,
  refund_failed: 4,
  payment_processed: 5,
  refunded: 7,
  returned: 7,
}
const PROCESSED = 5
/** Far above any deposit, and far below what a balance holds. */
const LARGEST_CENTS = 1_000_000_000_000n

/** Where an account goes and from where alone: an activation that is told late brings no account back. */
const steps: ReadonlyMap<
  string,
  { readonly from: readonly VirtualAccount['status'][]; readonly to: VirtualAccount['status'] }
> = new Map([
  ['deactivation', { from: ['pending', 'active'], to: 'deactivated' }],
  ['deactivated', { from: ['pending', 'active'], to: 'deactivated' }],
  ['reactivation', { from: ['pending', 'deactivated'], to: 'active' }],
  ['activated', { from: ['pending'], to: 'active' }],
])

/** Applies an event, in one transaction with the record of it. @returns what is to be minted after the commit. */
export async function applyBankingEvent<Owed>(
  parts: BankApplying<Owed>,
  event: BankingEvent,
  at: Date,
): Promise<Owed | null> {
  const table = event.kind === 'deposit' ? await parts.rates.latest(at) : null
  return parts.database.transaction(async (connection) => {
    const { eventId: id, type } = event
    const noted = await connection.kysely
      .insertInto('webhook_event')
      .values({ provider: 'bridge', id, type, received_at: at })
      .onConflict((conflict) => conflict.doNothing())
      .returning('id')
      .executeTakeFirst()
    if (noted === undefined) return null
    if (event.kind === 'payout') await applyPayout(connection, event, at)
    if (event.virtualAccount === null) return null
    const account = await findVirtualAccount(connection, { providerId: event.virtualAccount })
    if (account === undefined) return null
    const step = event.kind === 'account' ? steps.get(event.state) : undefined
    if (step !== undefined) await moveVirtualAccount(connection, { id: account.id, ...step })
    if (event.kind !== 'deposit' || table === null) return null
    const mint = await applyDeposit(
      { ...parts, connection, worthOf: (money) => converted(money, account, table) },
      account,
      event,
      at,
    )
    return mint === null ? null : parts.oweMint(connection, account.accountId, mint)
  })
}

async function applyDeposit(
  {
    connection,
    isBookedHere,
    worthOf,
    log,
  }: BankApplying & { connection: Connection; worthOf: (money: Money) => Money },
  account: VirtualAccount,
  event: BankingEvent,
  at: Date,
): Promise<Mint | null> {
  const { objectId: id, state } = event
  const rank = ranks[state] ?? 0
  if (state === 'refund_failed') log.error({ depositId: id }, 'the bank could not give a deposit back')
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
  if (before.virtual_account_id !== account.id || rank <= before.rank) return null
  const change = connection.kysely
    .updateTable('deposit')
    .set({ state, rank, updated_at: at })
    .where('id', '=', id)
  const { destination } = account
  if (rank === PROCESSED && (isBookedHere || destination === null)) {
    const money = worthOf(amountOf(event, account))
    const place = destination?.chain ?? BANK
    await post(connection, {
      id: `deposit:${id}`,
      kind: 'deposit',
      reference: id,
      at,
      postings: [{ source: external(place), destination: available(account.accountId, place), money }],
    })
    await change.set({ place, asset: money.asset, units: money.units }).execute()
    return destination === null
      ? null
      : { token: destination.token, to: destination.address, units: money.units }
  }
  await change.execute()
  if (rank > PROCESSED && before.units !== null && before.place === BANK)
    await takeBack(
      { database: connection, log },
      { id, accountId: account.accountId, money: { asset: account.currency, units: before.units }, at },
    )
  else if (rank > PROCESSED && before.units !== null)
    log.error({ depositId: id, state }, 'a deposit was taken back that is on the chain already')
  return null
}

/** @throws Failure `invalid_request` where a deposit is final and says no amount of its account's currency. */
function amountOf({ amount, currency: said }: BankingEvent, { currency }: VirtualAccount): Money {
  if (said !== null && said.toUpperCase() !== currency)
    throw new Failure('invalid_request', `event_object.currency: the account is in ${currency}`, {
      issues: [{ path: 'event_object.currency', message: `the account is in ${currency}` }],
    })
  const parsed = decimalAmount.safeParse(amount?.replace(/(\.\d*?)0+$/, '$1').replace(/\.$/, ''))
  const misfit = parsed.success ? misfitOf(parsed.data, currency) : 'is not an amount'
  if (!parsed.success || misfit !== undefined) throw unfitAmount(misfit ?? 'is not an amount')
  const money = moneyOf(currency, parsed.data)
  if (money.units > LARGEST_CENTS) throw unfitAmount('is larger than any deposit')
  return money
}

function unfitAmount(message: string): Failure {
  return new Failure('invalid_request', `event_object.amount: ${message}`, {
    issues: [{ path: 'event_object.amount', message }],
  })
}

/** What a deposit becomes, at the rate of the moment and rounded down. @throws Failure `rates_unavailable`. */
function converted(
  money: Money,
  { destination }: VirtualAccount,
  table: Awaited<ReturnType<Rates['latest']>>,
): Money {
  if (destination === null) return money
  const asset = destination.token
  const [from, to] = [currencyOf(table, money.asset), currencyOf(table, asset)]
  if (from === undefined || to === undefined)
    throw new Failure('rates_unavailable', `There is no rate from ${money.asset} to ${asset}.`, {
      retryAfter: 60,
    })
  const rate = crossRateDown(from, to, 0)
  return { asset, units: convertDown(money.units, assetDecimals[money.asset], rate, assetDecimals[asset]) }
}
