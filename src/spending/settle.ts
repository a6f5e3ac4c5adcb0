/** The end of a spend that happened. */

import type { LedgerAccount } from '../ledger/accounts.ts'
import { type Connection, callForRow, type Statement } from '../storage/database.ts'

/** A spend whose money has gone. */
export interface Settlement {
  readonly decisionId: string
  /** Where the held money went, such as `external:base-sepolia`. */
  readonly destination: LedgerAccount
  readonly at: Date
}

/** What settling did. Only `settled` changed anything; `not_reserved`: nothing was ever held under this decision. */
export type SettleVerdict = 'settled' | 'already_settled' | 'already_released' | 'not_reserved'

const statement: Statement = {
  name: 'spend_settle',
  text: "select verdict from spend_resolve($1, 'settled', $2, $3)",
}

/** Moves the held money of a spend to its destination, once. */
export async function settleSpend(
  connection: Connection,
  { decisionId, destination, at }: Settlement,
): Promise<SettleVerdict> {
  const row = await callForRow<{ verdict: SettleVerdict }>(connection, statement, [
    decisionId,
    destination,
    at,
  ])
  return row.verdict
}
