/** Budget usage of a key today. */
import { z } from 'zod'
import type { Policy } from '../../policies/policy.ts'
import { usdMicrosOf, usdOfMicros } from '../../policies/usd.ts'
import { nextUtcDay, utcDay } from '../base/clock.ts'
import { firstIdAt } from '../base/ids.ts'
import type { Connection, Statement } from '../storage/database.ts'

export const usageView = z.strictObject({
  day: z.string().describe('UTC calendar day, YYYY-MM-DD.'),
  used: z.string().describe('USD spent or held today, as a decimal string.'),
  remaining: z
    .string()
    .nullable()
    .describe('USD left of the daily budget, as a decimal string; null without a policy.'),
  count: z.int().describe('Spends today.'),
  resetsAt: z.string().describe('When the budget resets, ISO 8601 UTC.'),
})

export async function showUsage(
  database: Connection,
  { keyId, policy }: { keyId: string; policy: Policy | null },
  now: Date,
): Promise<z.output<typeof usageView>> {
  const row = await database.kysely
    .selectFrom('budget_usage')
    .select(['used_micros', 'count'])
    .where('key_id', '=', keyId)
    .where('day', '=', utcDay(now))
    .executeTakeFirst()
  const used = row?.used_micros ?? 0n
  const left = policy === null ? null : usdMicrosOf(policy.dailyBudget.max) - used
  return {
    day: utcDay(now),
    used: usdOfMicros(used),
    remaining: left === null ? null : usdOfMicros(left > 0n ? left : 0n),
    count: row?.count ?? 0,
    resetsAt: nextUtcDay(now).toISOString(),
  }
}

export const categoryUsageView = z.strictObject({
  category: z.string().describe('Category of the policy, such as `transfer`.'),
  used: z.string().describe('USD spent or held today, as a decimal string.'),
  count: z.int().describe('Spends today.'),
})

const byCategory: Statement = {
  name: 'usage_by_category',
  text: `select d.facts ->> 'category' as category, sum(r.usd_micros)::bigint as used_micros, count(*)::int as count
    from decision d join reservation r on r.decision_id = d.id
    where d.account_id = $1 and d.id >= $2 and d.key_id = $3 and r.day = $4::date and r.status <> 'released'
    group by 1 order by 1`,
}

/**
 * Reads a key's spends and holds of today, by category. Amounts that a card purchase cleared beyond its approval are in the total
 * alone.
 */
export async function showUsageByCategory(
  database: Connection,
  { accountId, keyId }: { accountId: string; keyId: string },
  now: Date,
): Promise<z.output<typeof categoryUsageView>[]> {
  const day = utcDay(now)
  const since = firstIdAt('dec', new Date(`${day}T00:00:00.000Z`))
  const rows = await database.call<{ category: string; used_micros: bigint; count: number }>(byCategory, [
    accountId,
    since,
    keyId,
    day,
  ])
  return rows.map(({ category, used_micros, count }) => ({ category, used: usdOfMicros(used_micros), count }))
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
  return rows.map(({ day, used_micros, count }) => ({ day, used: usdOfMicros(used_micros), count }))
}
