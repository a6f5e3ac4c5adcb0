/** Dividends: whoever has shares at the end of a record date gets cash on the pay date, once. */
import { sql } from 'kysely'
import type { Clock } from '../clock.ts'
import { available, external } from '../ledger/accounts.ts'
import { post } from '../ledger/post.ts'
import type { Log } from '../log.ts'
import type { Broker, Dividend } from '../providers/broker.ts'
import { worthDown } from '../shares.ts'
import type { Database } from '../storage/database.ts'
import { BANK, BROKER } from './order.ts'

const DAY = 86_400_000

/** How far back and ahead the calendar is read. */
const PAST_DAYS = 120
const AHEAD_DAYS = 45

/** What paying needs. */
interface Paying {
  readonly database: Database
  readonly broker: Broker
  readonly clock: Clock
  readonly log: Log
}

const dayOf = (milliseconds: number) => new Date(milliseconds).toISOString().slice(0, 10)

/** Who is entitled, for record dates that are over; then whatever is due is paid. Safe to repeat and to run twice at once. */
export async function payDividends({ database, broker, clock, log }: Paying): Promise<void> {
  const now = clock().getTime()
  const calendar = await broker.dividends(dayOf(now - PAST_DAYS * DAY), dayOf(now - DAY))
  await entitle(database, calendar)
  const due = await database.kysely
    .selectFrom('dividend')
    .selectAll()
    .where('status', '=', 'announced')
    .where('pay_date', '<=', dayOf(now))
    .orderBy('pay_date')
    .limit(500)
    .execute()
  for (const { account_id: accountId, symbol, record_date: recordDate, amount } of due)
    await pay(database, { accountId, symbol, recordDate, amount, at: new Date(now) }).catch((err: unknown) =>
      log.error({ err, accountId, symbol, recordDate }, 'a dividend cannot be paid yet'),
    )
}

/** Quantities are those of the history, however late this runs. What is less than a cent (1e16) in all is nobody's. */
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
    select c.account_id as "accountId", e.symbol, e.record_date as "recordDate", e.pay_date as "payDate",
      e.per_share as "perShare", sum(c.qty)::bigint as qty
    from jsonb_to_recordset(${events}::jsonb) as e (symbol text, per_share bigint, record_date date, pay_date date)
    join position_change c on c.symbol = e.symbol and c.at < (e.record_date + 1)::timestamp at time zone 'UTC'
    where not exists (
      select 1 from dividend d
      where d.account_id = c.account_id and d.symbol = e.symbol and d.record_date = e.record_date)
    group by 1, 2, 3, 4, 5 having sum(c.qty) * e.per_share >= 1e16
    order by 1, 2, 3 limit 1000`.execute(database.kysely)
  if (rows.length === 0) return
  await database.kysely
    .insertInto('dividend')
    .values(
      rows.map(({ accountId, symbol, recordDate, payDate, perShare, qty }) => ({
        account_id: accountId,
        symbol,
        record_date: recordDate,
        pay_date: payDate,
        qty,
        per_share: perShare,
        amount: worthDown(qty, perShare),
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
    amount,
    at,
  }: { accountId: string; symbol: string; recordDate: string; amount: bigint; at: Date },
): Promise<void> {
  await database.transaction(async (connection) => {
    const { numUpdatedRows } = await connection.kysely
      .updateTable('dividend')
      .set({ status: 'paid', paid_at: at })
      .where('account_id', '=', accountId)
      .where('symbol', '=', symbol)
      .where('record_date', '=', recordDate)
      .where('status', '=', 'announced')
      .executeTakeFirstOrThrow()
    // Rows of less than a cent are those of earlier versions.
    if (numUpdatedRows === 0n || amount === 0n) return
    await post(connection, {
      id: `dividend:${accountId}:${symbol}:${recordDate}`,
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

/** A dividend as an account sees it. @property amount cents. */
export interface ShownDividend {
  readonly symbol: string
  readonly qty: bigint
  readonly perShare: bigint
  readonly amount: bigint
  readonly status: 'announced' | 'paid'
  readonly payDate: string
}

/** Those that an account was entitled to, newest first, after those that it will be if it keeps what it has. */
export async function showDividends(
  { database, broker }: Pick<Paying, 'database' | 'broker'>,
  {
    accountId,
    positions,
    now,
  }: { accountId: string; positions: readonly { symbol: string; qty: bigint }[]; now: Date },
): Promise<readonly ShownDividend[]> {
  const calendar = await broker.dividends(dayOf(now.getTime()), dayOf(now.getTime() + AHEAD_DAYS * DAY))
  const coming = calendar.flatMap(({ symbol, perShare, payDate }) =>
    positions
      .filter((position) => position.symbol === symbol && position.qty > 0n)
      .map(({ qty }) => ({
        symbol,
        qty,
        perShare,
        amount: worthDown(qty, perShare),
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
  const own = rows.map(({ symbol, qty, per_share: perShare, amount, status, pay_date: payDate }) => ({
    symbol,
    qty,
    perShare,
    amount,
    status,
    payDate,
  }))
  const announced = coming
    .filter(({ amount }) => amount > 0n)
    .sort((one, other) => (one.payDate < other.payDate ? 1 : -1))
  return [...announced, ...own]
}
