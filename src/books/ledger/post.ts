/**
 * The ledger: double entry, append-only. Money moves only through `post` and the spends of `src/books/spending`; a
 * correction is a new posting. May import the base and the database port. The database functions keep the invariants:
 * every posting credits one account with what it debits from another, so the books sum to zero; no owner's account
 * falls below zero; an owner's materialized balance equals the sum of its postings.
 */
import { Failure } from '../../core/failures/failure.ts'
import { formatValue, nameValue, type Value } from '../../core/money/shares.ts'
import { type Connection, callForRow, type Statement } from '../../storage/database.ts'
import type { LedgerAccount } from './accounts.ts'

/** Money or shares from one account to another. @property money above zero. */
export interface Posting {
  readonly source: LedgerAccount
  readonly destination: LedgerAccount
  readonly money: Value
}

/** One movement, posted completely or not at all. */
export interface LedgerTransaction {
  /** Unique forever: posting the same id again changes nothing. */
  readonly id: string
  /** Kind of movement, such as `deposit`. */
  readonly kind: string
  /** Id of the related object, such as a transfer or a provider event. */
  readonly reference: string
  readonly at: Date
  readonly postings: readonly Posting[]
}

const statement: Statement = {
  name: 'ledger_post',
  text: 'select * from ledger_post($1, $2, $3, $4, $5, $6, $7, $8)',
}

interface Shortage {
  readonly verdict: 'insufficient_funds'
  readonly account: string
  readonly asset: Value['asset']
  readonly available_units: bigint
  readonly needed_units: bigint
}

/**
 * Books a movement of money once.
 * @returns `already_posted` when its id is already booked and nothing changed.
 * @throws Failure `insufficient_funds` when an owner's account would fall below zero; nothing changed.
 */
export async function post(
  connection: Connection,
  { id, kind, reference, at, postings }: LedgerTransaction,
): Promise<'posted' | 'already_posted'> {
  const row = await callForRow<Shortage | { readonly verdict: 'posted' | 'already_posted' }>(
    connection,
    statement,
    [
      id,
      kind,
      reference,
      at,
      postings.map(({ source }) => source),
      postings.map(({ destination }) => destination),
      postings.map(({ money }) => money.asset),
      postings.map(({ money }) => money.units.toString()),
    ],
  )
  if (row.verdict !== 'insufficient_funds') return row.verdict
  throw insufficientFunds(row)
}

function insufficientFunds({ account, asset, available_units, needed_units }: Shortage): Failure {
  const available = formatValue({ asset, units: available_units })
  const needed = formatValue({ asset, units: needed_units })
  const name = nameValue({ asset })
  return new Failure('insufficient_funds', `${account} has ${available} ${name}; ${needed} ${name} needed.`, {
    hint: 'Add funds first.',
  })
}
