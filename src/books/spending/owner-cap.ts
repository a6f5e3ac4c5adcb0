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

export type OwnerCap = Readonly<Record<BudgetPeriod, PeriodCap>>

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
    ])
    .where('id', '=', accountId)
  const caps = await (isLocked ? query.forNoKeyUpdate() : query).executeTakeFirstOrThrow()
  const usage = await readUsage(database, { accountId }, now)
  const toCap = (period: BudgetPeriod): PeriodCap => ({
    maxMicros: caps[period],
    usedMicros: usage[period].usedMicros,
    resetsAt: findPeriod(period, now).end,
  })
  return { day: toCap('day'), week: toCap('week'), month: toCap('month') }
}

/** Sets an account's caps, in millionths of a USD; they apply from the next spend. */
export async function setOwnerCap(
  database: Connection,
  { accountId, caps }: { accountId: string; caps: Readonly<Record<BudgetPeriod, bigint | null>> },
): Promise<void> {
  await database.kysely
    .updateTable('account')
    .set({
      agent_daily_max_micros: caps.day,
      agent_weekly_max_micros: caps.week,
      agent_monthly_max_micros: caps.month,
    })
    .where('id', '=', accountId)
    .execute()
}
