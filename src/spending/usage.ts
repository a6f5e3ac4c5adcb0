/** Budget usage of a key today. */
import { z } from 'zod'
import type { Policy } from '../../policies/policy.ts'
import { usdMicrosOf, usdOfMicros } from '../../policies/usd.ts'
import { nextUtcDay, utcDay } from '../base/clock.ts'
import type { Connection } from '../storage/database.ts'

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
