/** The end of a spend that did not happen. */

import { type Connection, callForRow, type Statement } from '../storage/database.ts'

/** A spend of which it is certain that its money has not gone and will not. */
export interface SpendRelease {
  readonly decisionId: string
  readonly at: Date
}

/** What releasing did. Only `released` changed anything; `not_reserved`: nothing was ever held under this decision. */
export type ReleaseVerdict = 'released' | 'already_settled' | 'already_released' | 'not_reserved'

const statement: Statement = {
  name: 'spend_release',
  text: "select verdict from spend_resolve($1, 'released', null, $2)",
}

/** Gives the held money back to where it came from, and its budget back to the day that it was counted on, once. */
export async function releaseSpend(
  connection: Connection,
  { decisionId, at }: SpendRelease,
): Promise<ReleaseVerdict> {
  const row = await callForRow<{ verdict: ReleaseVerdict }>(connection, statement, [decisionId, at])
  return row.verdict
}
