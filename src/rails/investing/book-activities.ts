/**
 * Activities in a person's account at the broker. Dividends are booked as paid, after tax withheld. Everything that
 * changes a holding otherwise (splits, mergers, spin-offs) stops that holding until an administrator has looked at it.
 */
import { raiseAlarm } from '../../books/alarms/alarms.ts'
import type { Clock } from '../../core/base/clock.ts'
import { toJson } from '../../core/base/json.ts'
import type { Log } from '../../core/base/log.ts'
import type { BrokerageActivity } from '../../providers/broker/accounts.ts'
import type { Broker } from '../../providers/broker/port.ts'
import type { Connection, Database } from '../../storage/database.ts'

const DAY = 86_400_000
/** How far back activities are read. */
const PAST_DAYS = 40
/** Nano-dollars in a cent. */
const CENT = 10_000_000n

interface Booking {
  readonly database: Database
  readonly broker: Pick<Broker, 'accounts'>
  readonly clock: Clock
  readonly log: Log
}

interface Booked {
  readonly accountId: string
  readonly brokerageAccount: string
}

const toDay = (at: number) => new Date(at).toISOString().slice(0, 10)

/** Books an account's activities. Repeated and concurrent runs are safe. */
export async function bookActivities(
  { database, broker: { accounts }, clock, log }: Booking,
  { accountId, brokerageAccount }: Booked,
): Promise<void> {
  if (accounts === null) return
  const at = clock()
  const found = await accounts.activities(brokerageAccount, toDay(at.getTime() - PAST_DAYS * DAY))
  const stop = (symbol: string, reason: string, reported: readonly BrokerageActivity[]) =>
    raiseAlarm(
      { database, log },
      {
        domain: 'investing',
        objectId: `${accountId}:${symbol}`,
        reason,
        reported: toJson(reported.map((activity) => ({ ...activity, net: String(activity.net) }))),
        at,
      },
    )
  for (const activity of found)
    if (activity.kind === 'other' && !(await isKnownEvent(database, accountId, activity)))
      await stop(activity.symbol ?? 'cash', `activity_${activity.type.toLowerCase()}_${activity.id}`, [
        activity,
      ])
  // The tax withheld comes as an activity of its own; a day that is over has both.
  const isOver = ({ kind, day }: BrokerageActivity) => kind === 'dividend' && day < toDay(at.getTime())
  const payments = new Map<string, BrokerageActivity[]>()
  for (const activity of found.filter(isOver)) {
    const name = `${activity.symbol} ${activity.day}`
    payments.set(name, [...(payments.get(name) ?? []), activity])
  }
  for (const parts of payments.values()) {
    const fault = await bookDividend(database, accountId, parts)
    if (fault !== null) await stop(parts[0]?.symbol ?? 'cash', fault, parts)
  }
}

/** Checks whether an administrator has resolved the alarm of an event. */
async function isKnownEvent(
  { kysely }: Connection,
  accountId: string,
  { symbol, type, id }: BrokerageActivity,
): Promise<boolean> {
  const row = await kysely
    .selectFrom('alarm')
    .select('reason')
    .where('domain', '=', 'investing')
    .where('object_id', '=', `${accountId}:${symbol ?? 'cash'}`)
    .where('reason', '=', `activity_${type.toLowerCase()}_${id}`)
    .executeTakeFirst()
  return row !== undefined
}

/**
 * Records the dividend of a symbol and a day, to be paid by the dividend job.
 * @returns why it cannot be booked; null if it is, or was before.
 */
async function bookDividend(
  database: Connection,
  accountId: string,
  parts: readonly BrokerageActivity[],
): Promise<string | null> {
  const [first] = parts
  const paid = parts.filter(({ net }) => net > 0n)
  const named = paid.find(({ qty, perShare }) => (qty ?? 0n) > 0n && (perShare ?? 0n) > 0n)
  if (first === undefined || first.symbol === null || named === undefined) return 'dividend_unreadable'
  const { qty, perShare } = named
  if (qty === null || perShare === null) return 'dividend_unreadable'
  const gross = paid.reduce((sum, { net }) => sum + net, 0n) / CENT
  const amount = parts.reduce((sum, { net }) => sum + net, 0n) / CENT
  if (amount < 0n) return 'dividend_below_zero'
  const key = { account_id: accountId, symbol: first.symbol, record_date: first.day, ordinal: 0 }
  await database.kysely
    .insertInto('dividend')
    .values({
      ...key,
      pay_date: first.day,
      qty,
      per_share: perShare,
      amount,
      withheld: gross - amount,
      status: 'announced',
      paid_at: null,
    })
    .onConflict((conflict) => conflict.doNothing())
    .execute()
  const kept = await database.kysely
    .selectFrom('dividend')
    .select('amount')
    .where('account_id', '=', accountId)
    .where('symbol', '=', first.symbol)
    .where('record_date', '=', first.day)
    .where('ordinal', '=', 0)
    .executeTakeFirst()
  return kept?.amount === amount ? null : 'dividend_changed'
}
