/** Outflows of an account within the AML windows, as counted by the database. */
import type { OutflowRule, OutflowWindow } from '../../../policies/aml/outflow-windows.ts'
import { type Connection, callForRow, type Statement } from '../../storage/database.ts'

const statement: Statement = {
  name: 'outflow_exceeded',
  text: 'select outflow_exceeded($1, $2, $3) as exceeded',
}

/**
 * Reads the rules that one more spend would currently break. A preview: the reserve judges the same windows again,
 * because other spends may be reserved in between.
 */
export async function exceededOutflows(
  connection: Connection,
  {
    accountId,
    windows,
    at,
  }: { readonly accountId: string; readonly windows: readonly OutflowWindow[]; readonly at: Date },
): Promise<readonly OutflowRule[]> {
  if (windows.length === 0) return []
  const { exceeded } = await callForRow<{ exceeded: readonly { rule: OutflowRule }[] }>(
    connection,
    statement,
    [accountId, windowsText(windows), at],
  )
  return exceeded.map(({ rule }) => rule)
}

/** Serializes windows as the JSON text that the database functions read. */
export function windowsText(windows: readonly OutflowWindow[]): string {
  return JSON.stringify(
    windows.map(({ rule, seconds, usdMicros, maxUsdMicros, minCount, isJudged }) => ({
      rule,
      seconds,
      usd_micros: usdMicros.toString(),
      max_micros: maxUsdMicros?.toString() ?? null,
      min_count: minCount,
      is_judged: isJudged,
    })),
  )
}
