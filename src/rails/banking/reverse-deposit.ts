/**
 * Deposits reversed by the bank. No balance falls below zero: the gateway pays what the owner lacks, which becomes
 * the owner's debt.
 */

import { bookDebt, type DueDebt, lockDebts } from '../../books/debts/debts.ts'
import { available, external } from '../../books/ledger/accounts.ts'
import { lockUnits } from '../../books/ledger/balances.ts'
import { post } from '../../books/ledger/post.ts'
import { BANK } from '../../books/spending/sources.ts'
import type { Log } from '../../core/base/log.ts'
import { type Money, toDecimal } from '../../core/money/money.ts'
import { minimum } from '../../core/money/shares.ts'
import type { Connection } from '../../storage/database.ts'

/**
 * Returns a deposit to the bank once, within the caller's transaction.
 * @returns the debt to collect; null when the balance covered the deposit.
 */
export async function reverseDeposit(
  { database, log }: { database: Connection; log: Log },
  { id, accountId, money, at }: { id: string; accountId: string; money: Money; at: Date },
): Promise<DueDebt | null> {
  const { asset, units } = money
  const cash = available(accountId, BANK)
  await lockDebts(database, accountId)
  const balance = await lockUnits(database, cash, asset)
  const taken = minimum(balance, units)
  const owed = { asset, units: units - taken }
  if (taken > 0n)
    await post(database, {
      id: `deposit:${id}:returned`,
      kind: 'deposit_return',
      reference: id,
      at,
      postings: [{ source: cash, destination: external(BANK), money: { asset, units: taken } }],
    })
  if (owed.units === 0n) return null
  const debt = { id: `deposit:${id}`, asset, priority: [] }
  await bookDebt(database, {
    id: debt.id,
    accountId,
    kind: 'deposit',
    reference: id,
    owed,
    paidTo: external(BANK),
    at,
  })
  log.error(
    { depositId: id, asset, owed: toDecimal(owed) },
    'a reversed deposit exceeds the balance: the rest is a debt of its owner',
  )
  return debt
}
