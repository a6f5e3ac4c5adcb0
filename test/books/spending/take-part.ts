/** Calls `spend_take`: partial settlement of a spend, such as an order that fills step by step. */

import type { LedgerAccount } from '../../../src/books/ledger/accounts.ts'
import { type Connection, callForRow, type Statement } from '../../../src/storage/database.ts'

/**
 * A part of a spend's money that has left.
 * @property id unique forever: taking the same part again changes nothing.
 */
export interface Part {
  readonly decisionId: string
  readonly id: string
  readonly units: bigint
  readonly destination: LedgerAccount
  readonly at: Date
}

/** Result of taking a part. Only `taken` changed anything; `too_much`: less than the part is still held. */
export type PartVerdict =
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

/** Moves a part of a spend's held money to its destination, once. The rest is settled or released later. */
export async function settlePart(
  connection: Connection,
  { decisionId, id, units, destination, at }: Part,
): Promise<PartVerdict> {
  const row = await callForRow<{ verdict: PartVerdict }>(connection, statement, [
    decisionId,
    id,
    units,
    destination,
    at,
  ])
  return row.verdict
}
