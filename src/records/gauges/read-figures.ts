/** Figures of the whole deployment for its operator: volume, refusals, the card float and what waits. Read-only. */
import { firstIdAt } from '../../core/base/ids.ts'
import { type Asset, assetDecimals } from '../../core/money/money.ts'
import type { RateTable } from '../../core/money/rate-table.ts'
import { worthInMicros } from '../../core/money/usd-value.ts'
import { type RailId, railIds } from '../../providers/rail-controls/port.ts'
import type { Connection, Statement } from '../../storage/database.ts'
import { type CardFloat, readCardFloat } from './card-float.ts'

const DAY_MS = 86_400_000
const DAYS = 7
/** Decisions that a figure counts at most, newest first. */
export const MAX_COUNTED_DECISIONS = 200_000

/** Decisions that move money for another decision, or that are counted where they are paid. */
const uncounted = [
  'cards.settle',
  'cards.pull',
  'cards.return',
  'x402.fx',
  'cards.authorize',
  'cards.issue',
] as const

const spends: Statement = {
  name: 'figures_spends',
  text: `with recent as materialized (
      select d.id, d.at, d.verdict, d.facts ->> 'category' as category from decision d
      where d.id >= $1 and d.operation <> all($3::text[]) order by d.id desc limit $4
    )
    select n.category, null::text as asset, n.at >= $2 as is_recent, sum(r.usd_micros)::text as units, count(*)::int as count
    from recent n join reservation r on r.decision_id = n.id
    where n.verdict = 'allow' and r.status <> 'released' group by 1, 3`,
}

/** Movements that no reservation counts: card purchases, deposits of banks, and what buyers paid to this gateway. */
const movements: Statement = {
  name: 'figures_movements',
  text: `select 'card' as category, 'USD' as asset, a.created_at >= $2 as is_recent,
      sum(case a.status when 'pending' then a.approved else a.cleared - a.refunded end)::text as units, count(*)::int as count
    from card_authorization a where a.id >= $1 and a.created_at >= $3 and a.status in ('pending', 'settled') and not a.is_reserve group by 3
    union all
    select 'deposit', d.asset, d.updated_at >= $2, sum(d.units)::text, count(*)::int
    from deposit d where d.rank = 5 and d.units is not null and d.updated_at >= $3 group by 2, 3
    union all
    select 'sold', p.asset, p.updated_at >= $2, sum(p.units)::text, count(*)::int
    from payment p where p.state = 'settled' and p.updated_at >= $3 and p.reversed_at is null group by 2, 3`,
}

const refusals: Statement = {
  name: 'figures_refusals',
  text: `with recent as materialized (
      select d.id, d.at, d.verdict, d.violations from decision d where d.id >= $1 order by d.id desc limit $3
    ), broken as (
      select n.at, v.rule from recent n
        cross join lateral jsonb_to_recordset(n.violations) as v (rule text) where n.verdict = 'deny'
      union all
      select n.at, n.verdict from recent n where n.verdict = 'insufficient_funds'
    )
    select b.rule, count(*) filter (where b.at >= $2)::int as day, count(*)::int as week
    from broken b group by b.rule order by 3 desc, 1`,
}

/** Each part reads a partial index over open rows, or a table that is small. */
const queues: Statement = {
  name: 'figures_queues',
  text: `select q.queue, count(*)::int as waiting, min(q.since) as oldest_at from (
      select 'reviews' as queue, created_at as since from aml_review where status = 'open'
      union all select 'reviews', created_at from deposit_review where status = 'open'
      union all select 'reviews', created_at from movement_review where status = 'open'
      union all select 'reviews', created_at from recovery_review where status = 'open'
      union all select 'identities', updated_at from kyc_application where status = 'pending'
      union all select 'travel_rules', t.created_at from travel_rule t where t.status = 'declined' and t.vasp_name is null
        and not exists (select from travel_rule_decision v where v.travel_rule_id = t.id)
      union all select 'alarms', first_seen_at from alarm where resolved_at is null
      union all select 'debts', created_at from debt where owed > 0
      union all select 'approvals', created_at from approval where status = 'pending' and expires_at > $1
      union all select 'transfers', created_at from transfer where state in ('reserved', 'submitted', 'settlement_pending')
      union all select 'relays', created_at from relay where state in ('reserved', 'submitted', 'settlement_pending')
      union all select 'purchases', created_at from purchase where state in ('reserved', 'signed')
      union all select 'sales', created_at from payment where state in ('taking', 'pending')
      union all select 'payouts', created_at from payout where rank < 5
      union all select 'orders', submitted_at from investing_order where status in ('new', 'accepted', 'partially_filled')
      union all select 'settlements', created_at from card_settlement where status in ('sending', 'refused')
      union all select 'card_messages', received_at from card_early
      union all select 'events', e.at from event_outbox o join event e on e.id = o.event_id
      union all select 'webhooks', created_at from webhook_delivery where status = 'pending'
      union all select 'mails', due_at from owner_mail where sent_at is null and due_at <= $1
    ) q group by q.queue`,
}

/** Queues in the order in which an operator reads them: first those that wait for a person. */
export const queueNames = [
  'reviews',
  'identities',
  'travel_rules',
  'alarms',
  'debts',
  'approvals',
  'transfers',
  'relays',
  'purchases',
  'sales',
  'payouts',
  'orders',
  'settlements',
  'card_messages',
  'events',
  'webhooks',
  'mails',
] as const

const railByKind: Readonly<Record<string, RailId>> = {
  transfer: 'wallet-transfer',
  gasless: 'wallet-gasless',
  sold: 'x402-fx',
  x402: 'x402-purchases',
  invest: 'investing',
  card: 'card-payments',
  deposit: 'bank-deposit',
  payout: 'bank-payout',
}

interface MovementRow {
  readonly category: string | null
  readonly asset: string | null
  readonly is_recent: boolean
  readonly units: string
  readonly count: number
}

/** Millionths of a USD. */
export interface Volume {
  readonly micros: bigint
  readonly count: number
}

export interface Figures {
  readonly volume: readonly { readonly rail: RailId; readonly day: Volume; readonly week: Volume }[]
  readonly refusals: readonly { readonly rule: string; readonly day: number; readonly week: number }[]
  readonly float: CardFloat
  readonly queues: readonly {
    readonly queue: (typeof queueNames)[number]
    readonly waiting: number
    readonly oldestAt: Date | null
  }[]
}

/** Reads the figures of the last 24 hours and seven days. @param table values what no decision has valued. */
export async function readFigures(
  database: Pick<Connection, 'call'>,
  table: RateTable,
  now: Date,
): Promise<Figures> {
  const [day, week] = [new Date(now.getTime() - DAY_MS), new Date(now.getTime() - DAYS * DAY_MS)]
  const since = firstIdAt('dec', week)
  const [spent, moved, refused, float, waiting] = await Promise.all([
    database.call<MovementRow>(spends, [since, day, [...uncounted], MAX_COUNTED_DECISIONS]),
    database.call<MovementRow>(movements, [firstIdAt('tx', week), day, week]),
    database.call<{ rule: string; day: number; week: number }>(refusals, [since, day, MAX_COUNTED_DECISIONS]),
    readCardFloat(database),
    database.call<{ queue: string; waiting: number; oldest_at: Date }>(queues, [now]),
  ])
  const rows = [...spent, ...moved]
  return {
    volume: railIds.map((rail) => {
      const own = rows.filter(({ category }) => category !== null && railByKind[category] === rail)
      return {
        rail,
        day: sumUp(
          own.filter((row) => row.is_recent),
          table,
        ),
        week: sumUp(own, table),
      }
    }),
    refusals: refused,
    float,
    queues: queueNames.map((queue) => {
      const row = waiting.find((one) => one.queue === queue)
      return { queue, waiting: row?.waiting ?? 0, oldestAt: row?.oldest_at ?? null }
    }),
  }
}

function sumUp(rows: readonly MovementRow[], table: RateTable): Volume {
  return rows.reduce(
    (sum, { asset, units, count }) => ({
      micros: sum.micros + toMicros(table, asset, BigInt(units)),
      count: sum.count + count,
    }),
    { micros: 0n, count: 0 },
  )
}

/** @param asset null: the units are millionths of a USD already. */
function toMicros(table: RateTable, asset: string | null, units: bigint): bigint {
  if (asset === null) return units
  if (!isAsset(asset)) return 0n
  return worthInMicros(table, { asset, units }) ?? 0n
}

function isAsset(name: string): name is Asset {
  return name in assetDecimals
}
