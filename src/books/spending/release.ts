/** Release of a spend that did not happen. */

import { type Connection, callForRow, type Statement } from '../../storage/database.ts'

/** A spend whose money certainly did not leave and never will. */
export interface SpendRelease {
  readonly decisionId: string
  readonly at: Date
}

/** Result of a release. Only `released` changed anything; `not_reserved`: the decision never held money. */
export type ReleaseVerdict = 'released' | 'already_settled' | 'already_released' | 'not_reserved'

const statement: Statement = {
  name: 'spend_release',
  text: "select verdict from spend_resolve($1, 'released', null, $2)",
}

/** Returns the held money to its source and its budget to the day it was counted on, once. */
export async function releaseSpend(
  connection: Connection,
  { decisionId, at }: SpendRelease,
): Promise<ReleaseVerdict> {
  const row = await callForRow<{ verdict: ReleaseVerdict }>(connection, statement, [decisionId, at])
  return row.verdict
}
