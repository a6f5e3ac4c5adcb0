/**
 * The ledger: double entry, append-only. Money moves by `post` and by the spends of `src/spending`, and by nothing else;
 * a correction is a new posting. May import the base and the database port. Invariants, kept by the database's own
 * functions: every posting takes from one account what it gives to another, so the books sum to zero; no owner's account
 * falls below zero; an owner's materialized balance equals the sum of its postings.
 */
import { Failure } from '../failures/failure.ts'
import { decimalOfValue, nameOfValue, type Value } from '../money/shares.ts'
import { type Connection, callForRow, type Statement } from '../storage/database.ts'
import type { LedgerAccount } from './accounts.ts'

/** Money or shares from one account to another. @property money above zero. */
export interface Posting {
  readonly source: LedgerAccount
  readonly destination: LedgerAccount
  readonly money: Value
}

/** One movement: all of its postings or none. */
export interface LedgerTransaction {
  /** Unique for ever: posting the same id again changes nothing. */
  readonly id: string
  /** What moved, such as `deposit`. */
  readonly kind: string
  /** What it belongs to, such as the id of a transfer or of a provider's event. */
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
 * Books a movement of money, once.
 * @returns `already_posted` where its id is in the books: nothing changed.
 * @throws Failure `insufficient_funds` where an owner's account would fall below zero: nothing changed.
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
  const available = decimalOfValue({ asset, units: available_units })
  const needed = decimalOfValue({ asset, units: needed_units })
  const name = nameOfValue({ asset })
  return new Failure('insufficient_funds', `${account} has ${available} ${name}; ${needed} ${name} needed.`, {
    hint: 'Add funds, or ask for a smaller amount.',
  })
}
