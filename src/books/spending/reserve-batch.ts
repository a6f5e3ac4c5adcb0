/** Reserves several spends in one round trip and one commit. */
import { Failure } from '../../core/failures/failure.ts'
import type { Connection, Statement } from '../../storage/database.ts'
import { type ReserveRow, type SpendVerdict, verdictOf } from './reserve.ts'
import { parametersOf } from './reserve-parameters.ts'
import type { SpendRequest } from './spend-request.ts'

const statement: Statement = {
  name: 'spend_reserve_batch',
  text: 'select * from spend_reserve_batch($1)',
}

/**
 * Decides spends in order, with the same verdicts as single calls. All are committed together. A throw means that
 * none was decided, unless it is a Failure: then the outcome is unknown.
 */
export async function reserveSpends(
  connection: Connection,
  requests: readonly SpendRequest[],
): Promise<readonly SpendVerdict[]> {
  const rows = await connection.call<ReserveRow>(statement, [`[${requests.map(objectOf).join()}]`])
  return requests.map((request, index) => {
    const row = rows[index]
    if (row === undefined) throw new Failure('internal', 'The batch of spends returned too few rows.')
    return verdictOf(row, request)
  })
}

/** Serializes a request as a JSON object. Its JSON members are already text; bigints become digits. */
function objectOf(request: SpendRequest): string {
  const { facts, violations, windows, transfer, budgets, purse, order, ...plain } = parametersOf(request)
  const text = JSON.stringify(plain, (_name, value: unknown) =>
    typeof value === 'bigint' ? value.toString() : value,
  )
  return `${text.slice(0, -1)},"facts":${facts},"violations":${violations},"windows":${windows},"transfer":${transfer},"budgets":${budgets},"purse":${purse},"order":${order}}`
}
