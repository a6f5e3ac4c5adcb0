/** Collects debts as soon as their owners have funds. */

import { collectDebt, type DebtCollectionDependencies, dueDebts } from '../../books/debts/debts.ts'
import type { Clock } from '../../core/base/clock.ts'
import type { Log } from '../../core/base/log.ts'
import { toDecimal } from '../../core/money/money.ts'
import type { Rates } from '../../providers/rates/port.ts'
import type { Database } from '../../storage/database.ts'

const BATCH = 100

export interface DebtCollectionJobDependencies extends DebtCollectionDependencies {
  readonly database: Database
  readonly rates: Rates
  readonly clock: Clock
  readonly log: Log
}

/** Runs one round. A failing item does not block the others. @param signal stops the round early. */
export async function collectDebts(
  parts: DebtCollectionJobDependencies,
  signal: AbortSignal,
): Promise<number> {
  const { database, rates, clock, log } = parts
  const debts = await dueDebts(database, BATCH)
  if (debts.length === 0) return 0
  const table = await rates.latest(clock())
  for (const debt of debts) {
    if (signal.aborted) break
    try {
      const units = await database.transaction((connection) =>
        collectDebt({ ...parts, database: connection }, debt, { table, at: clock() }),
      )
      const { asset, id: debtId } = debt
      if (units > 0n) log.info({ debtId, asset, amount: toDecimal({ asset, units }) }, 'a debt was collected')
    } catch (err) {
      log.error({ err, debtId: debt.id }, 'collecting a debt failed')
    }
  }
  return debts.length
}
