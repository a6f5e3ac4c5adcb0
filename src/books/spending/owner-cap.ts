/**
 * The owner's caps: the maximum that all keys of an account may spend together per UTC day, ISO week and month. The
 * spend function reads them under its lock.
 */
import { type BudgetPeriod, findPeriod } from '../../../policies/budget.ts'
import type { Connection } from '../../storage/database.ts'
import { readUsage } from './usage.ts'

/** The cap of one period and its usage, in millionths of a USD. @property maxMicros null: no cap. */
export interface PeriodCap {
  readonly maxMicros: bigint | null
  readonly usedMicros: bigint
  readonly resetsAt: Date
}

/** @property refundsRefill money that comes back returns to the budgets that it was spent from. */
export type OwnerCap = Readonly<Record<BudgetPeriod, PeriodCap>> & { readonly refundsRefill: boolean }

/** Reads an account's caps. @param isLocked locks them until the transaction ends. */
export async function readOwnerCap(
  database: Connection,
  { accountId, isLocked, now }: { accountId: string; isLocked: boolean; now: Date },
): Promise<OwnerCap> {
  const query = database.kysely
    .selectFrom('account')
    .select([
      'agent_daily_max_micros as day',
      'agent_weekly_max_micros as week',
      'agent_monthly_max_micros as month',
      'refunds_refill as refundsRefill',
    ])
    .where('id', '=', accountId)
  const caps = await (isLocked ? query.forNoKeyUpdate() : query).executeTakeFirstOrThrow()
  const usage = await readUsage(database, { accountId }, now)
  const toCap = (period: BudgetPeriod): PeriodCap => ({
    maxMicros: caps[period],
    usedMicros: usage[period].usedMicros,
    resetsAt: findPeriod(period, now).end,
  })
  return { day: toCap('day'), week: toCap('week'), month: toCap('month'), refundsRefill: caps.refundsRefill }
}

/** Sets an account's caps, in millionths of a USD, and what refunds do; both apply at once. */
export async function setOwnerCap(
  database: Connection,
  {
    accountId,
    caps,
    refundsRefill,
  }: {
    accountId: string
    caps: Readonly<Record<BudgetPeriod, bigint | null>>
    refundsRefill?: boolean
  },
): Promise<void> {
  await database.kysely
    .updateTable('account')
    .set({
      agent_daily_max_micros: caps.day,
      agent_weekly_max_micros: caps.week,
      agent_monthly_max_micros: caps.month,
      ...(refundsRefill === undefined ? {} : { refunds_refill: refundsRefill }),
    })
    .where('id', '=', accountId)
    .execute()
}
