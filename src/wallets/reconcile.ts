/**
 * Ledger and chain, compared wallet by wallet. What is under way explains a difference for a while; one that stays is money
 * that somebody put straight onto the wallet, which is credited, or money that is missing, which is an alarm. Nobody's
 * balance is ever lowered here.
 */
import { sql } from 'kysely'
import type { Clock } from '../clock.ts'
import type { NewId } from '../ids.ts'
import { balances } from '../ledger/balances.ts'
import type { Log } from '../log.ts'
import { decimalOf, type Stablecoin, stablecoins } from '../money.ts'
import type { Address, Chain } from '../providers/chain.ts'
import type { Connection, Database } from '../storage/database.ts'
import { bookDeposit } from './open-wallet.ts'
import { openRelaysTo, type Relay } from './relay-store.ts'
import { addressOf, openTransfersOf, stablecoinOf } from './store.ts'
import { isUsed } from './token-authorization.ts'

/** What reconciling needs. */
export interface Reconciling {
  readonly database: Database
  readonly chain: Chain
  readonly newId: NewId
  readonly clock: Clock
  readonly log: Log
}

/** A wallet by its account. @property address lower case. */
export interface ReconciledWallet {
  readonly accountId: string
  readonly address: Address
}

/** One token of a wallet, in smallest units. */
export interface Position {
  readonly token: Stablecoin
  readonly booked: bigint
  readonly onChain: bigint
}

/** A relay that nobody saw being broadcast is waited for so long; after that the token is asked whether it has paid. */
const RELAYING_MS = 30_000

/** How long a difference must stay the same before it is believed. */
const BELIEVED_MS = 5_000

/**
 * Compares a wallet once. Whoever has something under way is left for the next time.
 * @returns where money is missing.
 */
export async function reconcileWallet(
  parts: Reconciling,
  wallet: ReconciledWallet,
): Promise<readonly Position[]> {
  const { database, chain, clock } = parts
  if (await isUnderWay(parts, wallet)) return []
  const before = await bookedOf(database, chain, wallet.accountId)
  const onChain = await Promise.all(stablecoins.map((token) => chain.balanceOf(token, wallet.address)))
  const after = await bookedOf(database, chain, wallet.accountId)
  // After the balances were read: what no token has executed by now is in none of them.
  if ((await isUnderWay(parts, wallet)) || (await isPaidBySlowRelay(parts, wallet))) return []
  const missing: Position[] = []
  for (const [index, token] of stablecoins.entries()) {
    const position = { token, booked: before.get(token) ?? 0n, onChain: onChain[index] ?? 0n }
    if (position.booked !== after.get(token)) continue
    if (await isMissing(parts, wallet, position, clock())) missing.push(position)
  }
  return missing
}

/** What the books say that a wallet has on the chain: what can be spent, and what is held. */
export async function bookedOf(
  database: Connection,
  chain: Pick<Chain, 'name'>,
  accountId: string,
): Promise<ReadonlyMap<Stablecoin, bigint>> {
  const rows = await balances(database, accountId)
  const here = rows.filter(({ place }) => place === chain.name)
  return new Map(
    stablecoins.map((token) => {
      const row = here.find(({ asset }) => asset === token)
      return [token, (row?.available ?? 0n) + (row?.held ?? 0n)] as const
    }),
  )
}

/** Credits what came in. @returns whether money is missing, and has been for a while. */
async function isMissing(
  parts: Reconciling,
  wallet: ReconciledWallet,
  position: Position,
  at: Date,
): Promise<boolean> {
  const { token, booked, onChain } = position
  if (booked === onChain) {
    await forget(parts.database, wallet.accountId, token)
    return false
  }
  const seenAt = await firstSeen(parts.database, wallet, position, at)
  if (at.getTime() - seenAt.getTime() < BELIEVED_MS) return false
  if (onChain < booked) return true
  await credit(parts, wallet, position, at)
  return false
}

/** Credits what came in, if the books are still what they were compared with: of two processes, one does. */
async function credit(
  parts: Reconciling,
  wallet: ReconciledWallet,
  { token, booked, onChain }: Position,
  at: Date,
): Promise<void> {
  const { database, chain, log } = parts
  const { accountId, address } = wallet
  const funds = [{ asset: token, units: onChain - booked }]
  const isCredited = await database.transaction(async (connection) => {
    await connection.kysely
      .selectFrom('wallet')
      .select('address')
      .where('account_id', '=', accountId)
      .forUpdate()
      .execute()
    const now = await bookedOf(connection, chain, accountId)
    if (now.get(token) !== booked || (await isUnderWay({ ...parts, database: connection }, wallet)))
      return false
    const reference = `chain ${address}`
    await bookDeposit({ ...parts, database: connection }, { accountId, funds, reference, at })
    await forget(connection, accountId, token)
    return true
  })
  const amount = decimalOf({ asset: token, units: onChain - booked })
  if (isCredited) log.info({ address, token, amount }, 'a deposit straight onto a wallet was credited')
}

/** Whether a transfer to or from the wallet, or a relay to it that may well arrive at any moment, has not ended. */
async function isUnderWay(
  { database, clock }: { database: Connection; clock: Clock },
  wallet: ReconciledWallet,
): Promise<boolean> {
  if ((await openTransfersOf(database, wallet)).length > 0) return true
  const relays = await openRelaysTo(database, wallet.address)
  return relays.some((relay) => !isSlow(relay, clock()))
}

/** Whether one of the slow relays has paid the wallet. Others must not keep what comes in besides from being credited. */
async function isPaidBySlowRelay(
  { database, chain, clock }: Reconciling,
  wallet: ReconciledWallet,
): Promise<boolean> {
  const relays = await openRelaysTo(database, wallet.address)
  const slow = relays.filter((relay) => isSlow(relay, clock()))
  return (await Promise.all(slow.map(({ payment }) => isUsed(chain, payment)))).includes(true)
}

function isSlow({ transactionHash, createdAt }: Pick<Relay, 'transactionHash' | 'createdAt'>, at: Date) {
  return transactionHash === null && at.getTime() - createdAt.getTime() > RELAYING_MS
}

/** Differences that stand, with their wallets: those that were seen last come first. */
export async function findDrifts(
  database: Connection,
): Promise<readonly (ReconciledWallet & Position & { firstSeenAt: Date; lastSeenAt: Date })[]> {
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
    token: stablecoinOf(row.token),
    booked: row.booked,
    onChain: row.on_chain,
    firstSeenAt: row.first_seen_at,
    lastSeenAt: row.last_seen_at,
  }))
}

async function firstSeen(
  database: Connection,
  { accountId }: ReconciledWallet,
  { token, booked, onChain }: Position,
  at: Date,
): Promise<Date> {
  const { rows } = await sql<{ first_seen_at: Date }>`
    insert into wallet_drift (account_id, token, booked, on_chain, first_seen_at, last_seen_at)
    values (${accountId}, ${token}, ${booked}, ${onChain}, ${at}, ${at})
    on conflict (account_id, token) do update set
      booked = excluded.booked,
      on_chain = excluded.on_chain,
      last_seen_at = excluded.last_seen_at,
      -- Another difference is a new one.
      first_seen_at = case
        when wallet_drift.booked = excluded.booked and wallet_drift.on_chain = excluded.on_chain
        then wallet_drift.first_seen_at else excluded.first_seen_at end
    returning first_seen_at`.execute(database.kysely)
  return rows[0]?.first_seen_at ?? at
}

async function forget(database: Connection, accountId: string, token: Stablecoin): Promise<void> {
  await database.kysely
    .deleteFrom('wallet_drift')
    .where('account_id', '=', accountId)
    .where('token', '=', token)
    .execute()
}
