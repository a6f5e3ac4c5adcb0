/**
 * Reconciliation of ledger and chain, per wallet and in both directions. A surplus is credited only as far as
 * `Transfer` logs explain it. A deficit is frozen. Pending transfers explain a difference only up to their own
 * amounts, so a pending transfer cannot hide a loss.
 */
import { sql } from 'kysely'
import { decimalOf, type Stablecoin, stablecoins } from '../../../core/money/money.ts'
import { minimum } from '../../../core/money/shares.ts'
import type { Connection } from '../../../storage/database.ts'
import { addressOf, type OnChain, stablecoinOf } from '../store.ts'
import { bookMovements, type MovementParts } from './book-movements.ts'
import { type ReconciledWallet, readBookedBalances, readBookedUnits } from './booked-balances.ts'
import { keptUnits } from './movement-reviews.ts'
import { readPendingMovements } from './pending-movements.ts'
import { freeze, recordCovered, type ShortfallPlace, unfreeze } from './shortfall.ts'

export type ReconciliationDependencies = MovementParts

export interface Position {
  readonly token: Stablecoin
  readonly booked: bigint
  readonly onChain: bigint
}

/** How long a difference must persist before it counts: nodes may answer from different blocks. */
const CONFIRMATION_MS = 5_000

/** How far back the deposits behind a surplus are searched, in blocks. */
const SEARCH_BLOCKS = 50_000n

/**
 * Compares a wallet once and acts on differences.
 * @param isEvident a log shows that tokens left, so the difference counts at once.
 * @returns positions with missing money.
 */
export async function reconcileWallet(
  parts: ReconciliationDependencies,
  wallet: ReconciledWallet,
  { isEvident = false }: { isEvident?: boolean } = {},
): Promise<readonly Position[]> {
  const { database, chain, clock } = parts
  const before = await readBookedBalances(database, chain, wallet.accountId)
  const onChain = await Promise.all(stablecoins.map((token) => chain.readBalance(token, wallet.address)))
  // Read after the chain: a transfer the chain had executed by then is either still open here or already booked.
  const pending = await readPendingMovements(parts, wallet)
  const after = await readBookedBalances(database, chain, wallet.accountId)
  const missing: Position[] = []
  for (const [index, token] of stablecoins.entries()) {
    const position = {
      token,
      before: before.get(token) ?? 0n,
      after: after.get(token) ?? 0n,
      onChain: onChain[index] ?? 0n,
      leaving: pending.leaving.get(token) ?? 0n,
      isArriving: pending.isArriving,
    }
    if (await isShort(parts, wallet, position, { isEvident, at: clock() }))
      missing.push({ token, booked: position.after, onChain: position.onChain })
  }
  return missing
}

interface Compared {
  readonly token: Stablecoin
  readonly before: bigint
  readonly after: bigint
  readonly onChain: bigint
  readonly leaving: bigint
  readonly isArriving: boolean
}

/** @returns whether money is missing and has been for {@link CONFIRMATION_MS}. */
async function isShort(
  parts: ReconciliationDependencies,
  wallet: ReconciledWallet,
  { token, before, after, onChain, leaving, isArriving }: Compared,
  { isEvident, at }: { isEvident: boolean; at: Date },
): Promise<boolean> {
  const place: ShortfallPlace = { accountId: wallet.accountId, token, place: parts.chain.name }
  const missing = minimum(before, after) - leaving - onChain
  if (missing > 0n) {
    const seenAt = await firstSeen(parts, wallet, { token, booked: missing + onChain, onChain }, at)
    if (!isEvident && at.getTime() - seenAt.getTime() < CONFIRMATION_MS) return false
    await freeze(parts, place, { onChain, leaving, units: missing, at })
    return true
  }
  const isSettled = before === after && leaving === 0n && !isArriving
  if (!isSettled) return false
  await recordCovered(parts, place, at)
  // Tokens that wait for a review are neither booked nor a surplus.
  const kept = onChain > after ? (await keptUnits(parts, [wallet.accountId]))(wallet.accountId, token) : 0n
  const surplus = onChain - after - kept
  if (surplus <= 0n) {
    await forget(parts, wallet.accountId, token)
    return false
  }
  const seenAt = await firstSeen(parts, wallet, { token, booked: after, onChain }, at)
  if (at.getTime() - seenAt.getTime() >= CONFIRMATION_MS) await recover(parts, wallet, { place, at })
  return false
}

/** Searches for the deposits behind a surplus; if there are none, unfreezes frozen money. */
async function recover(
  parts: ReconciliationDependencies,
  wallet: ReconciledWallet,
  { place, at }: { place: ShortfallPlace; at: Date },
): Promise<void> {
  const { chain, database, log } = parts
  const { accountId, address } = wallet
  const booked = await readBookedUnits(database, place)
  const onChain = await chain.readBalance(place.token, address)
  const toBlock = await chain.blockNumber()
  const fromBlock = toBlock > SEARCH_BLOCKS ? toBlock - SEARCH_BLOCKS : 0n
  const found = await chain.findTransfers({ fromBlock, toBlock, to: address })
  for (const hash of new Set(found.map(({ transactionHash }) => transactionHash)))
    await bookMovements(parts, hash)
  // Both are read after the chain, whose balance may contain what has arrived without being booked.
  const { isArriving } = await readPendingMovements(parts, wallet)
  const kept = (await keptUnits(parts, [accountId]))(accountId, place.token)
  const surplus = onChain - booked.units - kept
  if (isArriving || surplus <= 0n) return
  const units = await unfreeze(parts, place, { units: surplus, bookings: booked.bookings, at })
  if (units === null) return
  const amount = decimalOf({ asset: place.token, units: surplus })
  const facts = { address, chain: chain.name, token: place.token, amount }
  if (units > 0n) log.warn(facts, 'the chain holds frozen money again')
  else log.warn(facts, 'a wallet has more on the chain than any log explains; nothing is credited')
}

interface Drift extends ReconciledWallet, Position {
  readonly chain: string
  readonly firstSeenAt: Date
  readonly lastSeenAt: Date
}

/** Lists open differences with their wallets, most recently seen first. */
export async function findDrifts(database: Connection): Promise<readonly Drift[]> {
  const rows = await database.kysely
    .selectFrom('wallet_drift')
    .innerJoin('wallet', 'wallet.account_id', 'wallet_drift.account_id')
    .selectAll('wallet_drift')
    .select('wallet.address')
    .orderBy('last_seen_at', 'desc')
    .limit(200)
    .execute()
  return rows.map((row) => ({
    accountId: row.account_id,
    address: addressOf(row.address),
    chain: row.chain,
    token: stablecoinOf(row.token),
    booked: row.booked,
    onChain: row.on_chain,
    firstSeenAt: row.first_seen_at,
    lastSeenAt: row.last_seen_at,
  }))
}

async function firstSeen(
  { database, chain: { name: chain } }: OnChain,
  { accountId }: ReconciledWallet,
  { token, booked, onChain }: Position,
  at: Date,
): Promise<Date> {
  const { rows } = await sql<{ first_seen_at: Date }>`
    insert into wallet_drift (account_id, chain, token, booked, on_chain, first_seen_at, last_seen_at)
    values (${accountId}, ${chain}, ${token}, ${booked}, ${onChain}, ${at}, ${at})
    on conflict (account_id, chain, token) do update set
      booked = excluded.booked,
      on_chain = excluded.on_chain,
      last_seen_at = excluded.last_seen_at,
      -- A difference in the other direction is a new one; its amount may change while it stands.
      first_seen_at = case
        when sign(wallet_drift.booked - wallet_drift.on_chain) = sign(excluded.booked - excluded.on_chain)
        then wallet_drift.first_seen_at else excluded.first_seen_at end
    returning first_seen_at`.execute(database.kysely)
  return rows[0]?.first_seen_at ?? at
}

async function forget({ database, chain }: OnChain, accountId: string, token: Stablecoin): Promise<void> {
  await database.kysely
    .deleteFrom('wallet_drift')
    .where('account_id', '=', accountId)
    .where('chain', '=', chain.name)
    .where('token', '=', token)
    .execute()
}
