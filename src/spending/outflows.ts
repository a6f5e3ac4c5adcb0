/** What left an account within the AML windows, as the database counts it. */
import type { OutflowRule, OutflowWindow } from '../../policies/aml/outflow-windows.ts'
import { type Connection, callForRow, type Statement } from '../storage/database.ts'

const statement: Statement = {
  name: 'outflow_exceeded',
  text: 'select outflow_exceeded($1, $2, $3) as exceeded',
}

/**
 * Reads the rules that one more spend would break at the moment. A preview: another spend may be reserved in the next instant,
 * so the reserve judges the same windows again.
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

/** Windows as the JSON text that the database's functions read. */
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
