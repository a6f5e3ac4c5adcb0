/**
 * Shortfalls: booked money that the chain no longer holds. Available money is frozen so that it cannot be spent; held
 * money cannot be frozen and is recorded as uncovered. Frozen money is released when the chain holds it again.
 */
import { sql } from 'kysely'
import { lockDebts } from '../../../books/debts/debts.ts'
import { available, frozen, held } from '../../../books/ledger/accounts.ts'
import { lockUnits } from '../../../books/ledger/balances.ts'
import { post } from '../../../books/ledger/post.ts'
import type { NewId } from '../../../core/base/ids.ts'
import type { Stablecoin } from '../../../core/money/money.ts'
import { minimum } from '../../../core/money/shares.ts'
import type { Connection, Database } from '../../../storage/database.ts'
import { parseStablecoin, toAddress } from '../store.ts'
import { readBookedUnits } from './booked-balances.ts'

/** Place of a shortfall. @property place chain name of the wallet. */
export interface ShortfallPlace {
  readonly accountId: string
  readonly token: Stablecoin
  readonly place: string
}

export interface ShortfallParts {
  readonly database: Database
  readonly newId: NewId
}

/**
 * Freezes what the chain no longer holds.
 * @param onChain on-chain balance.
 * @param leaving units of open transfers that the chain may have executed already.
 * @param units upper bound of the missing amount.
 */
export async function freeze(
  { database, newId }: ShortfallParts,
  shortfall: ShortfallPlace,
  { onChain, leaving, units, at }: { onChain: bigint; leaving: bigint; units: bigint; at: Date },
): Promise<void> {
  const { accountId, token, place } = shortfall
  await database.transaction(async (connection) => {
    const source = available(accountId, place)
    const spendable = await lockUnits(connection, source, token)
    const promised = await lockUnits(connection, held(accountId, place), token)
    const lacks = spendable + promised - leaving - onChain
    const missing = minimum(units, lacks > 0n ? lacks : 0n)
    const moved = minimum(missing, spendable)
    if (moved > 0n)
      await post(connection, {
        id: newId('tx', at),
        kind: 'shortfall',
        reference: accountId,
        at,
        postings: [{ source, destination: frozen(accountId, place), money: { asset: token, units: moved } }],
      })
    await note(connection, shortfall, { uncovered: missing - moved, at })
  })
}

/**
 * Releases frozen money that the chain holds again. @param units surplus of the chain over the books.
 * @param bookings the books when the surplus was read.
 * @returns null when the books have changed since, so that the surplus may be gone.
 */
export async function unfreeze(
  { database, newId }: ShortfallParts,
  shortfall: ShortfallPlace,
  { units, bookings, at }: { units: bigint; bookings: string; at: Date },
): Promise<bigint | null> {
  const { accountId, token, place } = shortfall
  return database.transaction(async (connection) => {
    await lockDebts(connection, accountId)
    if ((await readBookedUnits(connection, shortfall)).bookings !== bookings) return null
    const source = frozen(accountId, place)
    const moved = minimum(await lockUnits(connection, source, token), units)
    if (moved === 0n) return 0n
    await post(connection, {
      id: newId('tx', at),
      kind: 'shortfall_recovery',
      reference: accountId,
      at,
      postings: [{ source, destination: available(accountId, place), money: { asset: token, units: moved } }],
    })
    await note(connection, shortfall, { uncovered: 0n, at })
    return moved
  })
}

/** Records that the chain covers the available and held balances. */
export async function recordCovered(
  { database }: Pick<ShortfallParts, 'database'>,
  { accountId, token, place }: ShortfallPlace,
  at: Date,
): Promise<void> {
  const { kysely } = database
  await kysely
    .updateTable('wallet_shortfall')
    .set({ uncovered: 0n, updated_at: at })
    .where('account_id', '=', accountId)
    .where('chain', '=', place)
    .where('token', '=', token)
    .where('uncovered', '>', 0n)
    .execute()
}

/** Updates the shortfall row from the ledger; it stands while anything is frozen or uncovered. */
async function note(
  { kysely }: Connection,
  { accountId, token, place }: ShortfallPlace,
  { uncovered, at }: { uncovered: bigint; at: Date },
): Promise<void> {
  await sql`
    insert into wallet_shortfall as s (account_id, chain, token, frozen, uncovered, first_seen_at, updated_at)
    select ${accountId}, ${place}, ${token}, coalesce(max(b.units), 0), ${uncovered}, ${at}, ${at}
    from balance b where b.account = ${frozen(accountId, place)} and b.asset = ${token}
    on conflict (account_id, chain, token) do update
    set frozen = excluded.frozen, uncovered = excluded.uncovered, updated_at = excluded.updated_at`.execute(
    kysely,
  )
}

/** An open shortfall in smallest units. @property address wallet address, lower case. */
export interface Shortfall {
  readonly accountId: string
  readonly address: `0x${string}`
  readonly chain: string
  readonly token: Stablecoin
  readonly frozen: bigint
  readonly uncovered: bigint
  readonly firstSeenAt: Date
}

/** Lists open shortfalls, latest first. */
export async function findShortfalls({ kysely }: Connection): Promise<readonly Shortfall[]> {
  const rows = await kysely
    .selectFrom('wallet_shortfall')
    .innerJoin('wallet', 'wallet.account_id', 'wallet_shortfall.account_id')
    .selectAll('wallet_shortfall')
    .select('wallet.address')
    .where((eb) => eb.or([eb('frozen', '>', 0n), eb('uncovered', '>', 0n)]))
    .orderBy('wallet_shortfall.updated_at', 'desc')
    .limit(200)
    .execute()
  return rows.map((row) => ({
    accountId: row.account_id,
    address: toAddress(row.address),
    chain: row.chain,
    token: parseStablecoin(row.token),
    frozen: row.frozen,
    uncovered: row.uncovered,
    firstSeenAt: row.first_seen_at,
  }))
}
