/** Budget usage of a key: today, this week and this month. */
import { z } from 'zod'
import {
  type BudgetPeriod,
  budgetSpans,
  findPeriod,
  type PeriodUsage,
  type Usage,
} from '../../../policies/budget.ts'
import type { Policy } from '../../../policies/policy.ts'
import { formatUsd, toUsdMicros } from '../../../policies/usd.ts'
import { utcDay } from '../../core/base/clock.ts'
import { firstIdAt } from '../../core/base/ids.ts'
import { untrustedText } from '../../core/base/untrusted-text.ts'
import { type Connection, callForRow, type Statement } from '../../storage/database.ts'

/** Use of a span, in words. */
export const spanUse = (period: string) => ({
  used: z.string().describe(`USD spent or held ${period}.`),
  remaining: z.string().nullable().describe(`USD left ${period}; null: no limit.`),
  count: z.int().describe(`Spends ${period}.`),
})

const use = (period: string) => ({
  ...spanUse(period),
  resetsAt: z.string().describe('When it resets, ISO 8601 UTC.'),
})

export const usageView = z.strictObject({
  day: z.string().describe('UTC calendar day, YYYY-MM-DD.'),
  ...use('today'),
  week: z.strictObject(use('this week')).describe('From Monday, UTC.'),
  month: z.strictObject(use('this month')).describe('Calendar month, UTC.'),
  total: z.strictObject(spanUse('in all')).describe('Since the key began.'),
})
usageView.register(z.globalRegistry, { id: 'Usage' })

const byPeriod: Statement = {
  name: 'usage_by_period',
  text: `select p.period, coalesce(sum(u.used_micros), 0)::bigint as used_micros, coalesce(sum(u.count), 0)::int as count
    from unnest($3::text[], $4::text[], $5::text[]) as p (period, since, till)
    left join budget_usage u on u.day >= p.since::date and u.day < p.till::date and u.key_id = any (case when $2::text is null
      then array(select k.id from access_key k where k.account_id = $1 and k.path = '{}') else array[$2::text] end)
    group by p.period`,
}

/** Reads the usage of a key, or of all keys of an account, in the periods of `now`. */
export async function readUsage(
  database: Connection,
  of: { readonly keyId: string } | { readonly accountId: string },
  now: Date,
): Promise<PeriodUsage> {
  const spans = budgetSpans.map((period) => findPeriod(period, now))
  const rows = await database.call<PeriodRow>(byPeriod, [
    'accountId' in of ? of.accountId : null,
    'keyId' in of ? of.keyId : null,
    [...budgetSpans],
    spans.map(({ start }) => utcDay(start)),
    spans.map(({ end }) => utcDay(end)),
  ])
  return pickUsage(rows)
}

const byKey: Statement = {
  name: 'usage_by_key',
  text: `select u.key_id, p.period, sum(u.used_micros)::bigint as used_micros, sum(u.count)::int as count
    from unnest($2::text[], $3::text[], $4::text[]) as p (period, since, till)
    join budget_usage u on u.day >= p.since::date and u.day < p.till::date and u.key_id = any ($1::text[])
    group by u.key_id, p.period`,
}

/** Reads the usage of several keys in one query. @returns usage by key. */
export async function readUsages(
  database: Connection,
  keyIds: readonly string[],
  now: Date,
): Promise<ReadonlyMap<string, PeriodUsage>> {
  const spans = budgetSpans.map((period) => findPeriod(period, now))
  const rows = await database.call<PeriodRow & { readonly key_id: string }>(byKey, [
    [...keyIds],
    [...budgetSpans],
    spans.map(({ start }) => utcDay(start)),
    spans.map(({ end }) => utcDay(end)),
  ])
  const grouped = new Map<string, PeriodRow[]>(keyIds.map((id) => [id, []]))
  for (const row of rows) grouped.get(row.key_id)?.push(row)
  return new Map([...grouped].map(([id, periods]) => [id, pickUsage(periods)]))
}

const setAside: Statement = { name: 'earmarks_open', text: 'select earmarks_open($1, $2, $3) as units' }

/** Reads what a key sets aside for keys below it, but for those of `path`, in millionths of a US dollar. */
export async function readSetAside(
  database: Connection,
  { holderId, path, at }: { holderId: string; path: readonly string[]; at: Date },
): Promise<bigint> {
  return (await callForRow<{ units: bigint }>(database, setAside, [holderId, path, at])).units
}

const setAsides: Statement = {
  name: 'earmarks_open_of_keys',
  text: `select h.id, earmarks_open(h.id, '{}', $2) as units from unnest($1::text[]) h (id)`,
}

/** Reads what several keys set aside, by their ids, in millionths of a US dollar. */
export async function readSetAsides(
  database: Connection,
  { holderIds, at }: { holderIds: readonly string[]; at: Date },
): Promise<ReadonlyMap<string, bigint>> {
  const rows = await database.call<{ id: string; units: bigint }>(setAsides, [holderIds, at])
  return new Map(rows.map(({ id, units }) => [id, units]))
}

interface PeriodRow {
  readonly period: string
  readonly used_micros: bigint
  readonly count: number
}

/** A period without a row is unused. */
export function pickUsage(rows: readonly PeriodRow[]): PeriodUsage {
  const findUsage = (period: string): Usage => {
    const row = rows.find((one) => one.period === period)
    return { usedMicros: row?.used_micros ?? 0n, count: row?.count ?? 0 }
  }
  return {
    day: findUsage('day'),
    week: findUsage('week'),
    month: findUsage('month'),
    life: findUsage('life'),
  }
}

export async function showUsage(
  database: Connection,
  { keyId, policy }: { keyId: string; policy: Policy | null },
  now: Date,
): Promise<z.output<typeof usageView>> {
  return viewUsage(await readUsage(database, { keyId }, now), policy, now)
}

/** @param policy null for a key without one. @param now in the periods of `usage`. */
export function viewUsage(usage: PeriodUsage, policy: Policy | null, now: Date): z.output<typeof usageView> {
  const viewSpan = ({ usedMicros, count }: Usage, budget: Policy['weeklyBudget']) => {
    const left = budget === undefined ? null : toUsdMicros(budget.max) - usedMicros
    return {
      used: formatUsd(usedMicros),
      remaining: left === null ? null : formatUsd(left > 0n ? left : 0n),
      count,
    }
  }
  const viewPeriod = (period: BudgetPeriod, budget: Policy['weeklyBudget']) => ({
    ...viewSpan(usage[period], budget),
    resetsAt: findPeriod(period, now).end.toISOString(),
  })
  return {
    day: utcDay(now),
    ...viewPeriod('day', policy?.dailyBudget),
    week: viewPeriod('week', policy?.weeklyBudget),
    month: viewPeriod('month', policy?.monthlyBudget),
    total: viewSpan(usage.life, policy?.totalBudget),
  }
}

export const categoryUsageView = z.strictObject({
  category: z.string().describe('Category of the policy, such as `transfer`.'),
  used: z.string().describe('USD spent or held today.'),
  count: z.int().describe('Spends today.'),
})
categoryUsageView.register(z.globalRegistry, { id: 'CategoryUsage' })

export type CategoryUsage = z.output<typeof categoryUsageView>

/** Decisions that a breakdown counts at most, newest first. */
const MAX_COUNTED = 10_000
const MAX_PAYEES = 20
const BREAKDOWN_DAYS = 30

/** Sum of spends. */
export const spent = {
  used: z.string().describe('USD spent or held.'),
  count: z.int().describe('Number of spends.'),
}

export const usageBreakdown = {
  categories: z
    .array(z.strictObject({ category: z.string().describe('Category of the policy.'), ...spent }))
    .describe('Spends of the last 30 days by category, the most first.'),
  payees: z
    .array(z.strictObject({ payee: untrustedText('Seller, merchant, ticker or EVM address.'), ...spent }))
    .describe('The 20 payees that got the most in the last 30 days.'),
  decisions: z
    .strictObject({
      allowed: z.int().describe('Spends that were allowed.'),
      denied: z.int().describe('Spends that were denied, or whose money was not there.'),
      approvalRequired: z.int().describe('Spends that the owner was asked to approve.'),
    })
    .describe(
      'Decisions of the last 30 days. This and both lists count the latest 10,000 decisions at most.',
    ),
}

const breakdown: Statement = {
  name: 'usage_breakdown',
  text: `with recent as materialized (
      select d.id, d.verdict, d.facts from decision d
      where d.account_id = $1 and d.id >= $2 and d.key_id = $3 order by d.id desc limit $4
    ), spent as materialized (
      select d.facts ->> 'category' as category, r.usd_micros,
        coalesce(d.facts #>> '{seller,origin}', d.facts #>> '{found,merchant}', d.facts ->> 'counterparty', d.facts ->> 'symbol') as payee
      from recent d join reservation r on r.decision_id = d.id where r.status <> 'released'
    )
    select 'category' as part, s.category as name, sum(s.usd_micros)::bigint as used_micros, count(*)::int as count
    from spent s group by s.category
    union all
    (select 'payee', s.payee, sum(s.usd_micros)::bigint, count(*)::int
      from spent s where s.payee is not null group by s.payee order by 3 desc, 2 limit $5)
    union all
    select 'verdict', d.verdict, 0::bigint, count(*)::int from recent d group by d.verdict
    order by 1, 3 desc, 2`,
}

/** Reads a key's spends of the last 30 days by category and payee, and counts its decisions. */
export async function readUsageBreakdown(
  database: Connection,
  { accountId, keyId }: { accountId: string; keyId: string },
  now: Date,
) {
  const since = firstIdAt('dec', new Date(now.getTime() - BREAKDOWN_DAYS * 24 * 60 * 60 * 1000))
  const rows = await database.call<{ part: string; name: string; used_micros: bigint; count: number }>(
    breakdown,
    [accountId, since, keyId, MAX_COUNTED, MAX_PAYEES],
  )
  const pickPart = (part: string) => rows.filter((row) => row.part === part)
  const countVerdicts = (...verdicts: readonly string[]) =>
    pickPart('verdict').reduce((sum, { name, count }) => sum + (verdicts.includes(name) ? count : 0), 0)
  return {
    categories: pickPart('category').map(({ name: category, used_micros, count }) => ({
      category,
      used: formatUsd(used_micros),
      count,
    })),
    payees: pickPart('payee').map(({ name: payee, used_micros, count }) => ({
      payee,
      used: formatUsd(used_micros),
      count,
    })),
    decisions: {
      allowed: countVerdicts('allow'),
      denied: countVerdicts('deny', 'insufficient_funds'),
      approvalRequired: countVerdicts('approval_required'),
    },
  }
}

const byTask: Statement = {
  name: 'usage_by_task',
  text: `select d.facts ->> 'task' as name, sum(r.usd_micros)::bigint as used_micros, count(*)::int as count
    from (
      select d.id, d.facts from decision d
      where d.account_id = $1 and d.id >= $2 and d.facts ->> 'task' is not null
        and d.key_id in (select k.id from access_key k where k.id = $3 or k.path @> array[$3::text] and k.path <> '{}')
      order by d.id desc limit $4
    ) d join reservation r on r.decision_id = d.id where r.status <> 'released'
    group by 1 order by 2 desc, 1`,
}

const byChild: Statement = {
  name: 'usage_by_child',
  text: `select k.id as name, coalesce(sum(u.used_micros), 0)::bigint as used_micros, coalesce(sum(u.count), 0)::int as count
    from access_key k left join budget_usage u on u.key_id = k.id
    where k.account_id = $1 and k.path @> array[$2::text] and k.path <> '{}' and k.path[cardinality(k.path)] = $2
    group by k.id order by k.id`,
}

interface PartRow {
  readonly name: string
  readonly used_micros: bigint
  readonly count: number
}

/** Reads what a key and those below it spent in the last 30 days, by task. */
export async function readUsageByTask(
  database: Connection,
  { accountId, keyId }: { accountId: string; keyId: string },
  now: Date,
) {
  const since = firstIdAt('dec', new Date(now.getTime() - BREAKDOWN_DAYS * 24 * 60 * 60 * 1000))
  const rows = await database.call<PartRow>(byTask, [accountId, since, keyId, MAX_COUNTED])
  return rows.map(({ name, used_micros, count }) => ({ task: name, used: formatUsd(used_micros), count }))
}

/** Reads what each key that a key delegated to has spent in all, with those below it. */
export async function readUsageByChild(
  database: Connection,
  { accountId, keyId }: { accountId: string; keyId: string },
) {
  const rows = await database.call<PartRow>(byChild, [accountId, keyId])
  return rows.map(({ name, used_micros, count }) => ({ agentId: name, used: formatUsd(used_micros), count }))
}

/** Reads a key's usage on each day of the last 30 that has spends, newest first; today is excluded. */
export async function pastUsage(
  database: Connection,
  keyId: string,
  now: Date,
): Promise<{ day: string; used: string; count: number }[]> {
  const first = new Date(now.getTime() - 30 * 24 * 60 * 60 * 1000)
  const rows = await database.kysely
    .selectFrom('budget_usage')
    .select(['day', 'used_micros', 'count'])
    .where('key_id', '=', keyId)
    .where('day', '>=', utcDay(first))
    .where('day', '<', utcDay(now))
    .where('count', '>', 0)
    .orderBy('day', 'desc')
    .execute()
  return rows.map(({ day, used_micros, count }) => ({ day, used: formatUsd(used_micros), count }))
}
