/** Dividends: holders at the end of a record date receive cash on the pay date, once. */
import { sql } from 'kysely'
import { isStopped, raiseAlarm } from '../../books/alarms/alarms.ts'
import { available, external } from '../../books/ledger/accounts.ts'
import { post } from '../../books/ledger/post.ts'
import type { Clock } from '../../core/base/clock.ts'
import type { Log } from '../../core/base/log.ts'
import { worthRoundedDown } from '../../core/money/shares.ts'
import type { Broker, Dividend } from '../../providers/broker/port.ts'
import type { Database } from '../../storage/database.ts'
import { BANK, BROKER } from './order.ts'

const DAY = 86_400_000

/** How far back and ahead the dividend calendar is read. */
const PAST_DAYS = 120
const AHEAD_DAYS = 45

interface Paying {
  readonly database: Database
  readonly broker: Broker
  readonly clock: Clock
  readonly log: Log
}

const toDay = (milliseconds: number) => new Date(milliseconds).toISOString().slice(0, 10)

/** Records entitlements for past record dates and pays what is due. Repeated and concurrent runs are safe. */
export async function payDividends({ database, broker, clock, log }: Paying): Promise<void> {
  const now = clock().getTime()
  // A broker that keeps accounts of persons pays each of them itself: `book-activities.ts`.
  if (broker.accounts === null) await entitleHolders({ database, broker, clock, log })
  const due = await database.kysely
    .selectFrom('dividend')
    .selectAll()
    .where('status', '=', 'announced')
    .where('pay_date', '<=', toDay(now))
    .orderBy('pay_date')
    .limit(500)
    .execute()
  for (const { account_id: accountId, symbol, record_date: recordDate, ordinal, amount } of due)
    await pay(database, { accountId, symbol, recordDate, ordinal, amount, at: new Date(now) }).catch(
      (err: unknown) => log.error({ err, accountId, symbol, recordDate }, 'a dividend cannot be paid yet'),
    )
}

async function entitleHolders({ database, broker, clock, log }: Paying): Promise<void> {
  const now = clock().getTime()
  const range = { from: toDay(now - PAST_DAYS * DAY), to: toDay(now - DAY) }
  const calendar = await broker.dividends(range.from, range.to)
  await entitle(
    database,
    await filterValid({ database, broker, log }, { calendar, range, at: new Date(now) }),
  )
}

/** Maximum days between record date and pay date. */
const MAX_WAIT_DAYS = 366

/**
 * Filters valid announcements: within the requested dates, paid after the record date, and at most the share price
 * per share. Invalid ones raise an alarm and entitle no holder. Only symbols held by an account are checked.
 */
async function filterValid(
  { database, broker, log }: Pick<Paying, 'database' | 'broker' | 'log'>,
  { calendar, range, at }: { calendar: readonly Dividend[]; range: { from: string; to: string }; at: Date },
): Promise<readonly Dividend[]> {
  const owned = await database.kysely.selectFrom('position').select('symbol').distinct().execute()
  const symbols = new Set(owned.map(({ symbol }) => symbol))
  const announced = calendar.filter(({ symbol }) => symbols.has(symbol))
  const prices = await broker.quotes([...new Set(announced.map(({ symbol }) => symbol))])
  const findFault = ({ symbol, perShare, recordDate, payDate }: Dividend): string | null => {
    const waits = (Date.parse(payDate) - Date.parse(recordDate)) / DAY
    if (recordDate < range.from || recordDate > range.to) return 'dividend_of_another_date'
    if (!(waits >= 0 && waits <= MAX_WAIT_DAYS)) return 'dividend_paid_at_no_time'
    return perShare > 0n && perShare <= (prices.get(symbol) ?? 0n) ? null : 'dividend_beyond_price'
  }
  const found = announced.map((dividend) => ({
    dividend,
    reason: findFault(dividend),
    alarm: { domain: 'investing', objectId: `${dividend.symbol}:${dividend.recordDate}` } as const,
  }))
  for (const { dividend, reason, alarm } of found)
    if (reason !== null) {
      const reported = { ...dividend, perShare: dividend.perShare.toString() }
      await raiseAlarm({ database, log }, { ...alarm, reason, reported, at })
    }
  // Asked at once, they share a round trip. Those that were stopped just now are among them.
  const stops = await Promise.all(found.map(({ alarm }) => isStopped(database, alarm)))
  return found.filter(({ reason }, index) => reason === null && !stops[index]).map(({ dividend }) => dividend)
}

/**
 * Inserts entitlements from the position history, so a late run gives the same quantities. Totals below one cent
 * (1e16) are dropped. Several dividends with one record date each count, but never more than the calendar lists: a
 * dividend whose terms the broker corrects later is not owed twice.
 */
async function entitle(database: Database, calendar: readonly Dividend[]): Promise<void> {
  const events = JSON.stringify(
    calendar.map(({ symbol, perShare, recordDate, payDate }) => ({
      symbol,
      per_share: perShare.toString(),
      record_date: recordDate,
      pay_date: payDate,
    })),
  )
  const { rows } = await sql<Entitled>`
    with event as (
      select e.*, row_number() over (partition by symbol, record_date, pay_date, per_share) as twin,
        count(*) over (partition by symbol, record_date) as total
      from jsonb_to_recordset(${events}::jsonb) as e (symbol text, per_share bigint, record_date date, pay_date date)
    ), owed as (
      select c.account_id, e.symbol, e.record_date, e.pay_date, e.per_share, e.twin, e.total, sum(c.qty)::bigint as qty
      from event e
      join position_change c on c.symbol = e.symbol and c.at < (e.record_date + 1)::timestamp at time zone 'UTC'
      group by 1, 2, 3, 4, 5, 6, 7 having sum(c.qty) * e.per_share >= 1e16
    ), missing as (
      select o.*, (row_number() over (
          partition by o.account_id, o.symbol, o.record_date order by o.pay_date, o.per_share, o.twin) - 1 + k.known)::int as ordinal
      from owed o cross join lateral (
        select count(*) as known,
          count(*) filter (where d.pay_date = o.pay_date and d.per_share = o.per_share) as same
        from dividend d
        where d.account_id = o.account_id and d.symbol = o.symbol and d.record_date = o.record_date
      ) k
      where k.same < o.twin
    )
    select account_id as "accountId", symbol, record_date as "recordDate", pay_date as "payDate",
      per_share as "perShare", qty, ordinal
    from missing where ordinal < total
    order by 1, 2, 3, ordinal limit 1000`.execute(database.kysely)
  if (rows.length === 0) return
  await database.kysely
    .insertInto('dividend')
    .values(
      rows.map(({ accountId, symbol, recordDate, ordinal, payDate, perShare, qty }) => ({
        account_id: accountId,
        symbol,
        record_date: recordDate,
        ordinal,
        pay_date: payDate,
        qty,
        per_share: perShare,
        amount: worthRoundedDown(qty, perShare),
        status: 'announced' as const,
        paid_at: null,
      })),
    )
    .onConflict((conflict) => conflict.doNothing())
    .execute()
}

interface Entitled {
  readonly accountId: string
  readonly symbol: string
  readonly recordDate: string
  readonly ordinal: number
  readonly payDate: string
  readonly perShare: bigint
  readonly qty: bigint
}

async function pay(
  database: Database,
  {
    accountId,
    symbol,
    recordDate,
    ordinal,
    amount,
    at,
  }: {
    accountId: string
    symbol: string
    recordDate: string
    ordinal: number
    amount: bigint
    at: Date
  },
): Promise<void> {
  await database.transaction(async (connection) => {
    const { numUpdatedRows } = await connection.kysely
      .updateTable('dividend')
      .set({ status: 'paid', paid_at: at })
      .where('account_id', '=', accountId)
      .where('symbol', '=', symbol)
      .where('record_date', '=', recordDate)
      .where('ordinal', '=', ordinal)
      .where('status', '=', 'announced')
      .executeTakeFirstOrThrow()
    // Earlier versions stored rows of less than a cent.
    if (numUpdatedRows === 0n || amount === 0n) return
    await post(connection, {
      id: `dividend:${accountId}:${symbol}:${recordDate}${ordinal === 0 ? '' : `:${ordinal}`}`,
      kind: 'dividend',
      reference: symbol,
      at,
      postings: [
        {
          source: external(BROKER),
          destination: available(accountId, BANK),
          money: { asset: 'USD', units: amount },
        },
      ],
    })
  })
}

/** A dividend as shown to its account. @property amount cents. */
export interface DividendSummary {
  readonly symbol: string
  readonly qty: bigint
  readonly perShare: bigint
  readonly amount: bigint
  readonly status: 'announced' | 'paid'
  readonly payDate: string
}

/** Lists an account's dividends: expected ones for current positions first, then recorded ones, newest first. */
export async function showDividends(
  { database, broker }: Pick<Paying, 'database' | 'broker'>,
  {
    accountId,
    positions,
    now,
  }: { accountId: string; positions: readonly { symbol: string; qty: bigint }[]; now: Date },
): Promise<readonly DividendSummary[]> {
  const calendar = await broker.dividends(toDay(now.getTime()), toDay(now.getTime() + AHEAD_DAYS * DAY))
  const expected = calendar.flatMap(({ symbol, perShare, payDate }) =>
    positions
      .filter((position) => position.symbol === symbol && position.qty > 0n)
      .map(({ qty }) => ({
        symbol,
        qty,
        perShare,
        amount: worthRoundedDown(qty, perShare),
        status: 'announced' as const,
        payDate,
      })),
  )
  const rows = await database.kysely
    .selectFrom('dividend')
    .selectAll()
    .where('account_id', '=', accountId)
    .where('amount', '>', 0n)
    .orderBy('pay_date', 'desc')
    .orderBy('symbol')
    .limit(100)
    .execute()
  const recorded = rows.map(({ symbol, qty, per_share: perShare, amount, status, pay_date: payDate }) => ({
    symbol,
    qty,
    perShare,
    amount,
    status,
    payDate,
  }))
  const announced = expected
    .filter(({ amount }) => amount > 0n)
    .sort((one, other) => (one.payDate < other.payDate ? 1 : -1))
  return [...announced, ...recorded]
}
