/** A spend that goes in parts: an order that fills little by little. */

import type { LedgerAccount } from '../ledger/accounts.ts'
import { type Connection, callForRow, type Statement } from '../storage/database.ts'

/** A part of a spend's money that has gone. @property id unique for ever: taking the same part again changes nothing. */
export interface Part {
  readonly decisionId: string
  readonly id: string
  readonly units: bigint
  readonly destination: LedgerAccount
  readonly at: Date
}

/** What taking did. Only `taken` changed anything; `too_much`: less than that is still held. */
export type TakeVerdict =
  | 'taken'
  | 'already_taken'
  | 'already_settled'
  | 'already_released'
  | 'not_reserved'
  | 'too_much'

const statement: Statement = {
  name: 'spend_take',
  text: 'select verdict from spend_take($1, $2, $3, $4, $5)',
}

/** Moves a part of the held money of a spend to its destination, once. What is left is settled or released later. */
export async function takeSpend(
  connection: Connection,
  { decisionId, id, units, destination, at }: Part,
): Promise<TakeVerdict> {
  const row = await callForRow<{ verdict: TakeVerdict }>(connection, statement, [
    decisionId,
    id,
    units,
    destination,
    at,
  ])
  return row.verdict
}
