/**
 * Deposits on a chain from senders that AML does not clear. Tokens cannot be refused, so they lie in the wallet
 * without being booked: nothing can spend them until an administrator releases them, once.
 */
import type { Selectable } from 'kysely'
import { sql } from 'kysely'
import type { Clock } from '../../base/clock.ts'
import type { NewId } from '../../base/ids.ts'
import type { Log } from '../../base/log.ts'
import type { Page } from '../../base/page.ts'
import { Failure } from '../../failures/failure.ts'
import { available, external } from '../../ledger/accounts.ts'
import { post } from '../../ledger/post.ts'
import { decimalOf, type Stablecoin } from '../../money/money.ts'
import type { Address, Chain, Hex } from '../../providers/chain.ts'
import type { Chains } from '../../providers/chains.ts'
import type { AddressScreening, Screening } from '../../providers/screening.ts'
import type { Connection, Database, Statement } from '../../storage/database.ts'
import type { MovementReviewTable } from '../../storage/schema.ts'
import { addressOf, findOwnedWallet, openTransfersOf, stablecoinOf } from '../store.ts'
import { readBookedBalances } from './booked-balances.ts'
import { findOwedMints } from './owed-mints.ts'

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

/** Shown as the list of a deposit from a cleared sender whose tokens are not in the wallet any more. */
const NOT_ON_CHAIN = 'not_on_chain'

type Kept = Selectable<MovementReviewTable>

/** Screened again per round. */
const BATCH = 20

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
  const screening = await screened(parts, sender)
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

/** Screens senders again that could not be screened. @returns the number of deposits that still wait for it. */
export async function screenKeptDeposits(parts: DepositParts, signal: AbortSignal): Promise<number> {
  const { database, chain, clock, log } = parts
  const rows = await database.kysely
    .selectFrom('movement_review')
    .selectAll()
    .where('is_screened', '=', false)
    .where('status', '=', 'open')
    .where('chain', '=', chain.name)
    // Senders that are never answered for must not keep the others waiting.
    .orderBy(sql`random()`)
    .limit(BATCH)
    .execute()
  let waiting = 0
  for (const kept of rows) {
    const { id, sender } = kept
    if (signal.aborted) break
    const screening = await screened(parts, addressOf(sender))
    if (screening === undefined) {
      waiting += 1
      continue
    }
    const at = clock()
    const isMissing = screening.result === 'clear' && !(await isCovered(parts, kept))
    if (isMissing && (await isMoving(parts, kept))) {
      waiting += 1
      continue
    }
    const { result, lists } = isMissing ? ({ result: 'review', lists: [NOT_ON_CHAIN] } as const) : screening
    const status =
      result === 'review'
        ? ('open' as const)
        : result === 'blocked'
          ? ('blocked' as const)
          : ('released' as const)
    await database.transaction(async (connection) => {
      const row = await connection.kysely
        .updateTable('movement_review')
        .set({
          is_screened: true,
          status,
          decided_at: status === 'open' ? null : at,
          ...(lists.length > 0 && { lists: [...lists] }),
        })
        .where('id', '=', id)
        .where('is_screened', '=', false)
        .where('status', '=', 'open')
        .returningAll()
        .executeTakeFirst()
      if (row === undefined || status !== 'released') return
      await credit(connection, row.chain, { ...arrivalOf(row), at })
    })
    log.info({ reviewId: id, status }, 'the sender of a kept deposit was screened')
  }
  return waiting
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

/**
 * Checks that a review may credit its tokens: its transaction is still on its chain, which a reorganization may have
 * removed, and the wallet holds them beside its booked money, which an owner with a key of its own may have moved away.
 * A deposit that is blocked is not looked for, so that it can be blocked without its chain.
 * @returns undefined when there is no such review. @throws when the chain cannot be read.
 */
export async function isStillThere(
  { database, chains }: { database: Connection; chains: Pick<Chains, 'of'> },
  { id, status }: { id: string; status: 'released' | 'blocked' },
): Promise<boolean | undefined> {
  const row = await database.kysely
    .selectFrom('movement_review')
    .selectAll()
    .where('id', '=', id)
    .executeTakeFirst()
  if (row === undefined) return undefined
  return status === 'released' && isCovered({ database, chain: chains.of(row.chain) }, row)
}

/** Checks whether a deposit's tokens are on the chain beside the wallet's booked money. */
async function isCovered(
  { database, chain }: { database: Connection; chain: Chain },
  row: Kept,
): Promise<boolean> {
  const { transactionHash, money } = arrivalOf(row)
  if (row.identity !== (await chain.identity())) return false
  const position = Number(row.movement.slice(row.movement.lastIndexOf(':') + 1))
  const found = await chain.transaction(transactionHash)
  const isMined =
    found?.succeeded === true &&
    found.transfers.some(
      (log) =>
        log.position === position &&
        log.token === chain.tokens[money.asset]?.toLowerCase() &&
        log.from === row.sender &&
        log.units === row.units,
    )
  const wallet = isMined ? await findOwnedWallet(database, row.account_id) : undefined
  if (wallet === undefined) return false
  const booked = (await readBookedBalances(database, chain, row.account_id)).get(money.asset) ?? 0n
  return (await chain.balanceOf(money.asset, wallet.address)) >= booked + money.units
}

/** Checks whether booked money may be missing on the chain for a moment only: pending transfers and owed mints. */
async function isMoving(parts: DepositParts, { account_id: accountId, asset }: Kept): Promise<boolean> {
  const wallet = await findOwnedWallet(parts.database, accountId)
  if (wallet === undefined) return false
  const moving = [
    ...(await openTransfersOf(parts, { accountId, address: wallet.address })),
    ...(await findOwedMints(parts, accountId)),
  ]
  return moving.some(({ token }) => token === asset)
}

/**
 * Decides on a kept deposit, permanently, and credits a released one, in the caller's transaction.
 * @param isThere result of {@link isStillThere}.
 * @throws Failure `conflict` when it was decided before, belongs to the administrator, or left the chain.
 */
export async function decideMovementReview(
  { database, log }: { database: Connection; log: Log },
  {
    id,
    decidedBy,
    status,
    reason,
    isThere,
    at,
  }: {
    id: string
    decidedBy: string
    status: 'released' | 'blocked'
    reason: string
    isThere: boolean
    at: Date
  },
): Promise<void> {
  const review = await database.kysely
    .selectFrom('movement_review')
    .selectAll()
    .where('id', '=', id)
    .forUpdate()
    .executeTakeFirstOrThrow()
  if (review.account_id === decidedBy)
    throw new Failure('conflict', 'Administrators cannot decide reviews of their own money.', {
      hint: 'Let another administrator decide.',
    })
  if (review.status !== 'open')
    throw new Failure('conflict', 'The review was already decided.', {
      hint: 'GET /api/admin/reviews lists the open reviews.',
    })
  if (status === 'released' && !isThere)
    throw new Failure(
      'conflict',
      'The chain does not hold this deposit: its transaction is in no block, or its tokens have left the wallet.',
      {
        hint: 'Wait until the chain has it again and transfers have ended, or block it.',
      },
    )
  await database.kysely
    .updateTable('movement_review')
    .set({ status, decided_by: decidedBy, reason, decided_at: at })
    .where('id', '=', id)
    .execute()
  log.info({ reviewId: id, decidedBy, status }, 'an AML review was decided')
  if (status === 'released') await credit(database, review.chain, { ...arrivalOf(review), at })
}

/** Undefined: the screening did not answer. */
async function screened(
  { screening, log }: Pick<DepositParts, 'screening' | 'log'>,
  sender: Address,
): Promise<Screening | undefined> {
  return screening.screen(sender).catch((err: unknown) => {
    log.warn({ err }, 'the sender of a deposit cannot be screened yet')
    return undefined
  })
}

async function credit(
  connection: Connection,
  chain: string,
  { movement, accountId, transactionHash, money, at }: Omit<Arrival, 'identity' | 'sender'> & { at: Date },
): Promise<void> {
  const posting = { source: external(chain), destination: available(accountId, chain), money }
  await post(connection, {
    id: movement,
    kind: 'deposit',
    reference: transactionHash,
    at,
    postings: [posting],
  })
}

function arrivalOf(row: {
  movement: string
  account_id: string
  transaction_hash: string
  asset: string
  units: bigint
}): Omit<Arrival, 'identity' | 'sender'> {
  return {
    movement: row.movement,
    accountId: row.account_id,
    transactionHash: `0x${row.transaction_hash.slice(2)}`,
    money: { asset: stablecoinOf(row.asset), units: row.units },
  }
}
