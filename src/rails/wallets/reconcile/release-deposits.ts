/**
 * Releases of kept deposits, by the screening or by an administrator. A deposit is credited only while the chain holds its
 * tokens beside the booked money: both are compared, and the deposit is credited, under the account's lock.
 */
import type { Selectable } from 'kysely'
import { sql } from 'kysely'
import { lockDebts } from '../../../books/debts/debts.ts'
import { escrowPlace } from '../../../books/ledger/accounts.ts'
import { Failure } from '../../../core/failures/failure.ts'
import type { Chains } from '../../../providers/chain/chains.ts'
import type { Address, Chain } from '../../../providers/chain/port.ts'
import type { Connection } from '../../../storage/database.ts'
import type { MovementReviewTable } from '../../../storage/schema.ts'
import { addressOf, findEscrow, findOwnedWallet, stablecoinOf } from '../store.ts'
import { bookMovements, type MovementParts } from './book-movements.ts'
import { readBookedUnits } from './booked-balances.ts'
import { findCursor } from './chain-cursor.ts'
import { credit, parseArrival, screenSender } from './movement-reviews.ts'
import { readPendingMovements } from './pending-movements.ts'

type Kept = Selectable<MovementReviewTable>

/**
 * `covered`: the tokens are on the chain beside the booked money. `moving`: unknown while money moves. `missing`: the chain
 * has lost the deposit, or its tokens have left the wallet.
 */
type Cover = 'covered' | 'moving' | 'missing'

/** Shown as the list of a deposit from a cleared sender whose tokens are not in the wallet any more. */
const NOT_ON_CHAIN = 'not_on_chain'

/** Screened again per round. */
const BATCH = 20

/** How often a deposit is compared while the books of its wallet change. */
const MAX_COMPARISONS = 5

/** Screens senders again that could not be screened. @returns the number of deposits that still wait for it. */
export async function screenKeptDeposits(parts: MovementParts, signal: AbortSignal): Promise<number> {
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
    if (signal.aborted) break
    const screening = await screenSender(parts, addressOf(kept.sender))
    if (screening === undefined) {
      waiting += 1
      continue
    }
    const at = clock()
    const decide = async (connection: Connection, cover: Cover): Promise<boolean> => {
      if (cover === 'moving') return false
      const { result, lists } =
        cover === 'missing' ? ({ result: 'review', lists: [NOT_ON_CHAIN] } as const) : screening
      const status = STATUS_OF[result]
      const decided_at = status === 'open' ? null : at
      const row = await connection.kysely
        .updateTable('movement_review')
        .set({ is_screened: true, status, decided_at, ...(lists.length > 0 && { lists: [...lists] }) })
        .where('id', '=', kept.id)
        .where('is_screened', '=', false)
        .where('status', '=', 'open')
        .returningAll()
        .executeTakeFirst()
      if (row !== undefined && status === 'released')
        await credit(connection, row.chain, { ...parseArrival(row), at })
      log.info({ reviewId: kept.id, status }, 'the sender of a kept deposit was screened')
      return true
    }
    const isDecided =
      screening.result === 'clear'
        ? await withCover(parts, kept, decide)
        : await database.transaction((connection) => decide(connection, 'covered'))
    if (!isDecided) waiting += 1
  }
  return waiting
}

const STATUS_OF = { clear: 'released', review: 'open', blocked: 'blocked' } as const

/** @property chains a deposit is looked for on its own chain. */
export type ReleaseParts = Omit<MovementParts, 'chain'> & { readonly chains: Pick<Chains, 'of'> }

/**
 * Decides on a kept deposit, permanently, and credits a released one. A deposit that is blocked is not looked for, so that it can
 * be blocked without its chain.
 * @param record writes the decision to the journal, in its transaction.
 * @returns false when there is no such review.
 * @throws Failure `conflict` when it was decided before, belongs to the administrator, or left the chain; others when the chain
 * cannot be read.
 */
export async function decideMovementReview(
  { chains, ...parts }: ReleaseParts,
  {
    id,
    decidedBy,
    status,
    reason,
    at,
  }: { id: string; decidedBy: string; status: 'released' | 'blocked'; reason: string; at: Date },
  record: (connection: Connection) => Promise<void>,
): Promise<boolean> {
  const { database, log } = parts
  const kept = await database.kysely
    .selectFrom('movement_review')
    .selectAll()
    .where('id', '=', id)
    .executeTakeFirst()
  if (kept === undefined) return false
  const decide = async (connection: Connection, cover: Cover): Promise<boolean> => {
    const review = await lockReview(connection, id)
    requireOpen(review, decidedBy)
    if (status === 'released' && cover !== 'covered')
      throw new Failure(
        'conflict',
        'The chain does not hold this deposit: its transaction is in no block, or its tokens have left the wallet.',
        { hint: 'Wait until the chain has it again and transfers have ended, or block it.' },
      )
    await connection.kysely
      .updateTable('movement_review')
      .set({ status, decided_by: decidedBy, reason, decided_at: at })
      .where('id', '=', id)
      .execute()
    log.info({ reviewId: id, decidedBy, status }, 'an AML review was decided')
    if (status === 'released') await credit(connection, review.chain, { ...parseArrival(review), at })
    await record(connection)
    return true
  }
  if (status === 'blocked') return database.transaction((connection) => decide(connection, 'missing'))
  requireOpen(kept, decidedBy)
  return withCover({ ...parts, chain: chains.of(kept.chain) }, kept, decide)
}

/**
 * Runs work in a transaction that holds the deposit's account, with what books and chain say together. The chain is read
 * before it: books that have changed by then, by another release for instance, are compared again.
 */
async function withCover<Result>(
  parts: MovementParts,
  kept: Kept,
  work: (connection: Connection, cover: Cover) => Promise<Result>,
): Promise<Result> {
  for (let comparison = 1; ; comparison += 1) {
    const { cover, bookings } = await readCover(parts, kept)
    const done = await parts.database.transaction(async (connection) => {
      await lockReview(connection, kept.id)
      await lockDebts(connection, kept.account_id)
      const isSame = (await readBookedUnits(connection, toPlace(kept))).bookings === bookings
      if (!isSame && comparison < MAX_COMPARISONS) return undefined
      return { result: await work(connection, isSame ? cover : 'moving') }
    })
    if (done !== undefined) return done.result
  }
}

/** Compares a wallet with the chain. @property bookings the books that the comparison is about. */
async function readCover(
  parts: MovementParts,
  kept: Kept,
): Promise<{ readonly cover: Cover; readonly bookings: string }> {
  const { database, chain } = parts
  const { accountId, money } = parseArrival(kept)
  const { asset, units } = money
  const cursor = await findCursor(database, chain)
  const booked = await readBookedUnits(database, toPlace(kept))
  const answer = (cover: Cover) => ({ cover, bookings: booked.bookings })
  if (kept.identity !== (await chain.identity()) || cursor === undefined) return answer('missing')
  const address = (await isMined(chain, kept)) ? await addressOfPlace(database, kept) : undefined
  if (address === undefined) return answer('missing')
  const onChain = await chain.readBalance(asset, address)
  // Deposits that arrived without being booked yet cover nothing: booking them changes the books, or keeps them.
  const [fromBlock, toBlock] = [cursor.block.number + 1n, await chain.blockNumber()]
  const found = fromBlock > toBlock ? [] : await chain.findTransfers({ fromBlock, toBlock, to: address })
  for (const hash of new Set(found.map(({ transactionHash }) => transactionHash)))
    await bookMovements(parts, hash)
  const pending = await readPendingMovements(parts, { accountId, address })
  if (pending.isArriving) return answer('moving')
  if (onChain >= booked.units + units + (await readBlockedUnits(database, kept))) return answer('covered')
  return answer((pending.leaving.get(asset) ?? 0n) > 0n ? 'moving' : 'missing')
}

/** Checks that the chain still has a deposit, which a reorganization may have removed. */
async function isMined(chain: Chain, row: Kept): Promise<boolean> {
  const { transactionHash, money } = parseArrival(row)
  const position = Number(row.movement.slice(row.movement.lastIndexOf(':') + 1))
  const found = await chain.transaction(transactionHash)
  return (
    found?.succeeded === true &&
    found.transfers.some(
      (log) =>
        log.position === position &&
        log.token === chain.tokens[money.asset]?.toLowerCase() &&
        log.from === row.sender &&
        log.units === row.units,
    )
  )
}

/** Tokens of blocked deposits in the wallet, which cover no other deposit. */
async function readBlockedUnits({ kysely }: Connection, kept: Kept): Promise<bigint> {
  const rows = await kysely
    .selectFrom('movement_review')
    .select('units')
    .where('account_id', '=', kept.account_id)
    .where('place', 'is not distinct from', kept.place)
    .where('asset', '=', kept.asset)
    .where('chain', '=', kept.chain)
    .where('identity', '=', kept.identity)
    .where('status', '=', 'blocked')
    .execute()
  return rows.reduce((sum, { units }) => sum + units, 0n)
}

function toPlace({ account_id: accountId, asset, chain, place }: Kept) {
  return { accountId, token: stablecoinOf(asset), place: place ?? chain }
}

/** The address at which a kept deposit lies: the wallet's, its escrow's, or a purse's. */
async function addressOfPlace(database: Connection, kept: Kept): Promise<Address | undefined> {
  if (kept.place === null) return (await findOwnedWallet(database, kept.account_id))?.address
  if (kept.place === escrowPlace(kept.chain)) return findEscrow(database, kept.account_id)
  const row = await database.kysely
    .selectFrom('purse')
    .select('address')
    .where('account_id', '=', kept.account_id)
    .where('id', '=', kept.place.replace('purse.', ''))
    .executeTakeFirst()
  return row === undefined ? undefined : addressOf(row.address)
}

function lockReview({ kysely }: Connection, id: string): Promise<Kept> {
  return kysely
    .selectFrom('movement_review')
    .selectAll()
    .where('id', '=', id)
    .forUpdate()
    .executeTakeFirstOrThrow()
}

/** @throws Failure `conflict`. */
function requireOpen({ account_id, status }: Kept, decidedBy: string): void {
  if (account_id === decidedBy)
    throw new Failure('conflict', 'Administrators cannot decide reviews of their own money.', {
      hint: 'Let another administrator decide.',
    })
  if (status !== 'open')
    throw new Failure('conflict', 'The review was already decided.', {
      hint: 'GET /api/admin/reviews lists the open reviews.',
    })
}
