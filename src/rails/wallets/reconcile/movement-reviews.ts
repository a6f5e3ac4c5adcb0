/**
 * Deposits on a chain from senders that AML does not clear. Tokens cannot be refused, so they lie in the wallet
 * without being booked: nothing can spend them until an administrator releases them, once.
 */

import { available, external } from '../../../books/ledger/accounts.ts'
import { post } from '../../../books/ledger/post.ts'
import type { Clock } from '../../../core/base/clock.ts'
import type { NewId } from '../../../core/base/ids.ts'
import type { Log } from '../../../core/base/log.ts'
import type { Page } from '../../../core/base/page.ts'
import { decimalOf, type Stablecoin } from '../../../core/money/money.ts'
import type { Address, Chain, Hex } from '../../../providers/chain/port.ts'
import type { AddressScreening, Screening } from '../../../providers/screening/port.ts'
import type { Connection, Database, Statement } from '../../../storage/database.ts'
import { addressOf, stablecoinOf } from '../store.ts'

export interface DepositParts {
  readonly database: Database
  readonly chain: Chain
  readonly screening: AddressScreening
  readonly newId: NewId
  readonly clock: Clock
  readonly log: Log
}

/** Tokens that arrived at a wallet from outside. @property movement id of the ledger transaction that books them. */
export interface Arrival {
  readonly movement: string
  readonly accountId: string
  /** Purse that it arrived in, as its place in the ledger; null: the wallet. */
  readonly place: string | null
  readonly identity: string
  readonly transactionHash: Hex
  readonly money: { readonly asset: Stablecoin; readonly units: bigint }
  readonly sender: Address
}

/** A deposit that AML stopped. */
export interface MovementReview {
  readonly id: string
  readonly accountId: string
  readonly money: { readonly asset: Stablecoin; readonly units: bigint }
  readonly sender: Address
  readonly chain: string
  readonly lists: readonly string[]
  readonly status: 'open' | 'released' | 'blocked'
  readonly createdAt: Date
  readonly decidedBy: string | null
  readonly decidedAt: Date | null
  readonly reason: string | null
}

/** Shown as the list of a deposit whose sender could not be screened yet. */
const UNSCREENED = 'screening_unavailable'

const lock: Statement = {
  name: 'wallets_lock_movement',
  text: 'select pg_advisory_xact_lock(hashtextextended($1, 0))::text as locked',
}

const known: Statement = {
  name: 'wallets_known_movement',
  text: `select id from ledger_transaction where id = $1
    union all select id from movement_review where movement = $1`,
}

/**
 * Credits an arrival, or keeps it for a review, once. One whose sender cannot be screened is kept until it can be.
 * @returns whether it was credited by this call.
 */
export async function creditOrKeep(parts: DepositParts, arrival: Arrival): Promise<boolean> {
  const { database, clock, log, newId, chain } = parts
  const { movement, accountId, money, sender } = arrival
  if ((await database.call(known, [movement])).length > 0) return false
  const screening = await screenSender(parts, sender)
  const at = clock()
  return database.transaction(async (connection) => {
    // Two gateways may get different verdicts: one of them stands.
    await connection.call(lock, [movement])
    if ((await connection.call(known, [movement])).length > 0) return false
    if (screening?.result === 'clear') {
      await credit(connection, chain.name, { ...arrival, at })
      return true
    }
    const isBlocked = screening?.result === 'blocked'
    const id = newId('rev', at)
    const lists = screening?.lists ?? [UNSCREENED]
    await connection.kysely
      .insertInto('movement_review')
      .values({
        id,
        movement,
        account_id: accountId,
        place: arrival.place,
        chain: chain.name,
        identity: arrival.identity,
        transaction_hash: arrival.transactionHash,
        asset: money.asset,
        units: money.units,
        sender,
        is_screened: screening !== undefined,
        lists: [...lists],
        status: isBlocked ? 'blocked' : 'open',
        created_at: at,
        decided_at: isBlocked ? at : null,
      })
      .execute()
    log.warn({ reviewId: id, lists, amount: decimalOf(money) }, 'a deposit was not credited: AML stopped it')
    return false
  })
}

/**
 * Tokens that lie in wallets on the chain and must not be booked, in smallest units, by account and token.
 * @throws when the chain cannot be read.
 */
export async function keptUnits(
  { database, chain }: { database: Connection; chain: Pick<Chain, 'name' | 'identity'> },
  accountIds: readonly string[],
): Promise<(accountId: string, token: Stablecoin) => bigint> {
  const identity = await chain.identity()
  const rows = await database.kysely
    .selectFrom('movement_review')
    .select(({ fn }) => ['account_id', 'asset', fn.sum<string>('units').as('units')])
    .where('account_id', 'in', accountIds)
    .where('status', '<>', 'released')
    .where('place', 'is', null)
    .where('chain', '=', chain.name)
    .where('identity', '=', identity)
    .groupBy(['account_id', 'asset'])
    .execute()
  const kept = new Map(rows.map(({ account_id, asset, units }) => [`${account_id} ${asset}`, BigInt(units)]))
  return (accountId, token) => kept.get(`${accountId} ${token}`) ?? 0n
}

/** Lists stopped deposits, newest first: one more than the page's limit. */
export async function listMovementReviews(
  { kysely }: Connection,
  { status, page }: { status: MovementReview['status']; page: Page },
): Promise<readonly MovementReview[]> {
  const query = kysely.selectFrom('movement_review').selectAll().where('status', '=', status)
  const rows = await (page.after === null ? query : query.where('id', '<', page.after))
    .orderBy('id', 'desc')
    .limit(page.limit + 1)
    .execute()
  return rows.map((row) => ({
    id: row.id,
    accountId: row.account_id,
    money: { asset: stablecoinOf(row.asset), units: row.units },
    sender: addressOf(row.sender),
    chain: row.chain,
    lists: row.lists,
    status: row.status,
    createdAt: row.created_at,
    decidedBy: row.decided_by,
    decidedAt: row.decided_at,
    reason: row.reason,
  }))
}

/** Screens the sender of a deposit. @returns undefined when the screening does not answer. */
export async function screenSender(
  { screening, log }: Pick<DepositParts, 'screening' | 'log'>,
  sender: Address,
): Promise<Screening | undefined> {
  return screening.screen(sender).catch((err: unknown) => {
    log.warn({ err }, 'the sender of a deposit cannot be screened yet')
    return undefined
  })
}

/** Books a deposit, in the caller's transaction. */
export async function credit(
  connection: Connection,
  chain: string,
  {
    movement,
    accountId,
    place,
    transactionHash,
    money,
    at,
  }: Omit<Arrival, 'identity' | 'sender'> & { at: Date },
): Promise<void> {
  const posting = { source: external(chain), destination: available(accountId, place ?? chain), money }
  await post(connection, {
    id: movement,
    kind: 'deposit',
    reference: transactionHash,
    at,
    postings: [posting],
  })
}

/** Reads a stored deposit. */
export function parseArrival(row: {
  movement: string
  account_id: string
  place: string | null
  transaction_hash: string
  asset: string
  units: bigint
}): Omit<Arrival, 'identity' | 'sender'> {
  return {
    movement: row.movement,
    accountId: row.account_id,
    place: row.place,
    transactionHash: `0x${row.transaction_hash.slice(2)}`,
    money: { asset: stablecoinOf(row.asset), units: row.units },
  }
}
