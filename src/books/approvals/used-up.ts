/** Budgets that an approved spend uses up: nothing else passes until they reset. */
import { z } from 'zod'
import { type BudgetPeriod, budgetPeriods, findPeriod } from '../../../policies/budget.ts'
import { storedPolicy } from '../../../policies/policy.ts'
import { formatUsd, toUsdMicros } from '../../../policies/usd.ts'
import type { Connection } from '../../storage/database.ts'
import { readOwnerCap } from '../spending/owner-cap.ts'
import { readUsage } from '../spending/usage.ts'
import type { Approval } from './approvals.ts'

export const usedUpView = z
  .array(
    z.strictObject({
      period: z.enum(['day', 'week', 'month']).describe('Budget, in UTC.'),
      left: z.string().describe('USD left before it.'),
      resetsAt: z.string().describe('ISO 8601 UTC.'),
    }),
  )
  .describe('Budgets that it uses up when approved.')

const worth = z.looseObject({ usdMicros: z.string().nullish() })

/** Finds the budgets that a pending spend uses up: those of its key, and the caps over all keys. */
export async function findUsedUp(
  database: Connection,
  { status, accountId, keyId, decisionId }: Approval,
  now: Date,
): Promise<z.output<typeof usedUpView>> {
  if (status !== 'pending' || decisionId === null || keyId === null) return []
  const row = await database.kysely
    .selectFrom('decision')
    .innerJoin('access_key', 'access_key.id', 'decision.key_id')
    .select(['decision.facts', 'access_key.policy'])
    .where('decision.id', '=', decisionId)
    .executeTakeFirst()
  const micros = BigInt(worth.catch({}).parse(row?.facts).usdMicros ?? 0)
  if (row === undefined || micros === 0n) return []
  const policy = storedPolicy.nullable().parse(row.policy ?? null)
  const budgets = { day: policy?.dailyBudget, week: policy?.weeklyBudget, month: policy?.monthlyBudget }
  const [usage, caps] = await Promise.all([
    readUsage(database, { keyId }, now),
    readOwnerCap(database, { accountId, isLocked: false, now }),
  ])
  const findLeft = (period: BudgetPeriod) => {
    const { [period]: budget } = budgets
    const { maxMicros, usedMicros } = caps[period]
    const lefts = [
      ...(budget === undefined ? [] : [toUsdMicros(budget.max) - usage[period].usedMicros]),
      ...(maxMicros === null ? [] : [maxMicros - usedMicros]),
    ]
    return lefts.reduce<bigint | null>((least, left) => (least === null || left < least ? left : least), null)
  }
  return budgetPeriods.flatMap((period) => {
    const left = findLeft(period)
    if (left === null || left > micros) return []
    const resetsAt = findPeriod(period, now).end.toISOString()
    return [{ period, left: formatUsd(left > 0n ? left : 0n), resetsAt }]
  })
}
