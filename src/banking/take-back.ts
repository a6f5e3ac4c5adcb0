/**
 * Deposits that the bank takes back. Nobody's balance falls below zero: the gateway pays what its owner does not have, and
 * collects it from the owner's cash as soon as there is some, whether it was on hold or comes in later.
 */
import { sql } from 'kysely'
import { available, external, revenue } from '../ledger/accounts.ts'
import { lockUnits } from '../ledger/balances.ts'
import { post } from '../ledger/post.ts'
import type { Log } from '../log.ts'
import { type Asset, decimalOf, type Money } from '../money.ts'
import { least } from '../shares.ts'
import type { Connection, Database } from '../storage/database.ts'

/** Where cash lies. */
export const BANK = 'bank'

const loss = revenue('deposit-loss')

/** Gives a deposit back to the bank, once, within the transaction of its database. */
export async function takeBack(
  { database, log }: { database: Connection; log: Log },
  { id, accountId, money, at }: { id: string; accountId: string; money: Money; at: Date },
): Promise<void> {
  const { asset, units } = money
  const cash = available(accountId, BANK)
  const there = await lockUnits(database, cash, asset)
  const taken = least(there, units)
  const owed = units - taken
  const shares = [
    { source: cash, units: taken },
    { source: loss, units: owed },
  ]
  await post(database, {
    id: `deposit:${id}:returned`,
    kind: 'deposit_return',
    reference: id,
    at,
    postings: shares
      .filter((share) => share.units > 0n)
      .map((share) => ({
        source: share.source,
        destination: external(BANK),
        money: { asset, units: share.units },
      })),
  })
  if (owed === 0n) return
  await database.kysely.updateTable('deposit').set({ owed }).where('id', '=', id).execute()
  log.error(
    { depositId: id, asset, owed: decimalOf({ asset, units: owed }) },
    'a deposit was taken back that is not there any more',
  )
}

/** Deposits whose owner owes something and has cash, oldest first. */
export async function collectableDeposits(database: Connection, limit: number): Promise<readonly string[]> {
  const { rows } = await sql<{ id: string }>`
    select d.id from deposit d
    join balance b on b.account = d.account_id || ${`:${BANK}:available`} and b.asset = d.asset and b.units > 0
    where d.owed > 0
    order by d.created_at, d.id limit ${limit}`.execute(database.kysely)
  return rows.map(({ id }) => id)
}

/** Takes what is owed for a deposit as far as its owner has it. Safe to repeat, and to be done by two at once. */
export async function collectOwed(database: Database, { id, at }: { id: string; at: Date }): Promise<void> {
  await database.transaction(async (connection) => {
    const { rows } = await sql<{ account_id: string; asset: Asset; owed: bigint }>`
      select account_id, asset, owed from deposit where id = ${id} and owed > 0
      for update skip locked`.execute(connection.kysely)
    const [deposit] = rows
    if (deposit === undefined) return
    const { account_id: accountId, asset, owed } = deposit
    const cash = available(accountId, BANK)
    const there = await lockUnits(connection, cash, asset)
    const units = least(there, owed)
    if (units === 0n) return
    await post(connection, {
      // What is owed only ever falls: it names one collection.
      id: `deposit:${id}:collected:${owed}`,
      kind: 'deposit_collection',
      reference: id,
      at,
      postings: [{ source: cash, destination: loss, money: { asset, units } }],
    })
    await connection.kysely
      .updateTable('deposit')
      .set({ owed: owed - units })
      .where('id', '=', id)
      .execute()
  })
}
