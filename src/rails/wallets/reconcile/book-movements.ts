/**
 * Deposits and withdrawals made outside the gateway: tokens sent directly to a wallet, or moved by its owner with an
 * own key. Each is booked once from its `Transfer` log, a deposit after its sender was screened; a balance alone books
 * nothing.
 */
import { sql } from 'kysely'
import { zeroAddress } from 'viem'
import { isPaidBy, isProvedBy } from '../../../books/evidence/payment-outcome.ts'
import { isMarked } from '../../../books/evidence/transaction-mark.ts'
import { available, escrowPlace, external, frozen, pursePlace } from '../../../books/ledger/accounts.ts'
import { lockUnits } from '../../../books/ledger/balances.ts'
import { post } from '../../../books/ledger/post.ts'
import { chainNames } from '../../../core/money/chains.ts'
import { type Stablecoin, stablecoins, toDecimal } from '../../../core/money/money.ts'
import { minimum } from '../../../core/money/shares.ts'
import { findMint, isFromMessenger, parseBurnBody } from '../../../providers/cctp.ts'
import {
  type Address,
  type CalledTransaction,
  type Chain,
  type Hex,
  MINT_MARK,
  type TransferLog,
} from '../../../providers/chain/port.ts'
import { channelsAddress } from '../../../providers/payment-channels.ts'
import { escrowCollectorAddress } from '../../../providers/payment-escrow.ts'
import type { Connection, Database } from '../../../storage/database.ts'
import { relayMark, toExpected } from '../relays/relay-outcome.ts'
import { findMatchingRelays, type Relay } from '../relays/relay-store.ts'
import {
  findEscrowOwner,
  findMatchingTransfers,
  findSwapTransfers,
  findWalletsByAddress,
  lowerCase,
  toAddress,
  toOperation,
} from '../store.ts'
import { type Arrival, creditOrKeep, type DepositParts } from './movement-reviews.ts'

export interface MovementParts extends DepositParts {
  readonly settings: { readonly dataKey: Uint8Array }
}

/** The contract of payment channels, lower case. */
const CHANNELS = channelsAddress.toLowerCase()

/** What brings payments into escrow, and returns what is not escrowed of them, lower case. */
const COLLECTOR = escrowCollectorAddress.toLowerCase()

/** Maximum number of addresses per query. */
const MAX_ADDRESSES = 1_000

/** Account ids by wallet address, lower case. */
type Wallets = ReadonlyMap<Address, string>

/**
 * Books a transaction's movements from and to our wallets, except those of gateway operations.
 * @returns the wallets that tokens left.
 * @throws when the chain or the database cannot be read: retry later.
 */
export async function bookMovements(parts: MovementParts, hash: Hex): Promise<readonly Address[]> {
  const { database, chain } = parts
  const transaction = await chain.transaction(hash)
  if (transaction === undefined) return []
  // Anyone can write the mark, but only minters can create tokens.
  const isMint = isMarked(transaction, MINT_MARK)
  const moved = transaction.transfers.filter(
    ({ token, from }) => stablecoinAt(chain, token) !== undefined && !(isMint && from === zeroAddress),
  )
  const wallets = await findWalletsByAddress(
    database,
    moved.flatMap(({ from, to }) => [from, to]),
  )
  const places = await findPlacesByAddress(
    parts,
    moved.map(({ to }) => to),
  )
  const left = new Set<Address>()
  for (const transfer of moved) {
    const { from, to, units } = transfer
    // What a channel returns was in the books of its purse all the time.
    if (from === CHANNELS && places.get(to)?.place.startsWith('purse.chn_')) continue
    if (await isEscrowReturn(parts, from, places.get(to)?.place)) continue
    if (units === 0n || from === to || !(wallets.has(from) || wallets.has(to) || places.has(to))) continue
    const booked = await findBooked(parts, { transaction, transfer, wallets })
    const place = places.get(to)
    // A payment of a gateway operation to a purse or an escrow leaves the books there, unless it was made to fund it.
    const isArriving =
      (booked === null || (place !== undefined && !(await isFunding(database, booked, place)))) &&
      !(await isSwapArrival(parts, { transaction, transfer, wallets })) &&
      !(await isBridgeArrival(parts, { transaction, transfer, wallets }))
    const isLeaving = booked === null && wallets.has(from)
    if (isArriving || isLeaving)
      await bookMovement(parts, {
        ...{ transaction, transfer },
        receiver: isArriving ? findReceiver(wallets.get(to), place) : undefined,
        sender: isLeaving ? wallets.get(from) : undefined,
      })
    if (isLeaving) left.add(from)
  }
  return [...left]
}

/**
 * Checks whether a transfer is from the escrow to the address that paid a purchase: it is booked by the escrow's state, which is looked at
 * soon.
 */
async function isEscrowReturn(
  { database, clock }: MovementParts,
  from: Address,
  place: string | undefined,
): Promise<boolean> {
  if (place === undefined || !place.startsWith('purse.buy_')) return false
  const paid = database.kysely
    .updateTable('purchase')
    .set({ escrow_look_at: clock() })
    .where('id', '=', place.replace('purse.', ''))
    .where('scheme', '=', 'auth-capture')
    .returning('id')
  const returned = await (from === COLLECTOR
    ? paid
    : paid.where('escrow_store', '=', from)
  ).executeTakeFirst()
  return returned !== undefined
}

/** Money of an account beside its wallet. */
type Places = ReadonlyMap<Address, { readonly accountId: string; readonly place: string }>

/**
 * Finds the purses and escrows at these addresses: a seller may pay back to the address that paid. They are on the chain of their
 * account's wallet, and purses of purchases on another chain on that; on any other chain, the addresses are not ours to spend from. @param addresses lower case.
 */
export async function findPlacesByAddress(
  { database: { kysely }, chain: { name } }: { database: Connection; chain: Pick<Chain, 'name'> },
  addresses: readonly Address[],
): Promise<Places> {
  const found = new Map<Address, { accountId: string; place: string }>()
  const distinct = [...new Set(addresses)]
  for (let start = 0; start < distinct.length; start += MAX_ADDRESSES) {
    const some = distinct.slice(start, start + MAX_ADDRESSES)
    const purses = await kysely
      .selectFrom('purse')
      .innerJoin('wallet', 'wallet.account_id', 'purse.account_id')
      .select(['purse.id', 'purse.account_id', 'purse.address'])
      .where('purse.address', 'in', some)
      .where(({ eb, fn }) => eb(fn.coalesce('purse.chain', 'wallet.chain'), '=', name))
      .execute()
    for (const { id, account_id: accountId, address } of purses)
      found.set(toAddress(address), { accountId, place: pursePlace(id) })
    const escrows = await kysely
      .selectFrom('wallet')
      .select(['account_id', 'escrow'])
      .where('escrow', 'in', some)
      .where('chain', '=', name)
      .execute()
    for (const { account_id: accountId, escrow } of escrows)
      if (escrow !== null) found.set(toAddress(escrow), { accountId, place: escrowPlace(name) })
  }
  return found
}

function findReceiver(
  wallet: string | undefined,
  place: { readonly accountId: string; readonly place: string } | undefined,
): Pick<Arrival, 'accountId' | 'place'> | undefined {
  return wallet === undefined ? place : { accountId: wallet, place: null }
}

interface Movement {
  readonly transaction: CalledTransaction
  readonly transfer: TransferLog
  readonly wallets: Wallets
}

/** A gateway operation that moved tokens, which is booked elsewhere. @property decisionId of a transfer; null for others. */
interface Booked {
  readonly decisionId: string | null
}

/** Finds the transfer, the relay or the sweep of the gateway that made the movement; null if none did. */
async function findBooked(
  parts: MovementParts,
  { transaction, transfer, wallets }: Movement,
): Promise<Booked | null> {
  const { database, chain } = parts
  const { from, to: destination, units, operationHash } = transfer
  const token = stablecoinAt(chain, transfer.token)
  if (token === undefined) return null
  const accountId = wallets.get(from) ?? (await findEscrowOwner(database, from))
  if (accountId === undefined) {
    for (const relay of await findMatchingRelays(parts, { payer: from, destination, token, units }))
      if (await carriesRelay(parts, relay, transaction)) return { decisionId: null }
    return (await isSweep(database, transfer)) ? { decisionId: null } : null
  }
  if (operationHash === null) return null
  const sought = { accountId, destination, token, units, transaction: transaction.hash }
  // A reorganization may have moved the operation out of the transaction under which it was recorded.
  for (const others of [false, true])
    for (const candidate of await findMatchingTransfers(parts, { ...sought, others })) {
      // The chain executes an operation once, in any transaction.
      if (chain.hashOperation(toOperation(candidate)) === operationHash) return candidate
    }
  return null
}

/**
 * Checks whether the desk hands over what a swap of the receiver bought: the swap's end books it. Anybody can have the desk pay a
 * wallet, so that only the operation tells.
 */
async function isSwapArrival(
  parts: MovementParts,
  { transaction, transfer: { from, to, operationHash }, wallets }: Movement,
): Promise<boolean> {
  const { chain } = parts
  const accountId = wallets.get(to)
  if (from !== lowerCase(chain.swapDesk) || operationHash === null || accountId === undefined) return false
  for (const candidate of await findSwapTransfers(parts, { accountId, transaction: transaction.hash }))
    if (chain.hashOperation(toOperation(candidate)) === operationHash) return true
  return false
}

/**
 * Checks whether a mint is the arrival of a burn of the receiver: the swap's end books it. Where somebody else has minted before the
 * gateway knew the message, the swap gets to know it here: of two equal burns, either may be it.
 */
async function isBridgeArrival(
  { database, chain }: MovementParts,
  { transaction, transfer: { from, to, token, position }, wallets }: Movement,
): Promise<boolean> {
  const accountId = wallets.get(to)
  const delivered = transaction.delivered.find((one) => position > one.after && position < one.position)
  if (from !== zeroAddress || accountId === undefined || delivered === undefined) return false
  const body = parseBurnBody(delivered.body)
  const asset = stablecoinAt(chain, token)
  const sources = chainNames.filter((name) => isFromMessenger(delivered, name))
  if (body?.recipient !== to || asset === undefined || body.sender !== lowerCase(chain.bridgeDesk))
    return false
  // What somebody else has minted beside it is a deposit.
  const mint = findMint(transaction.transfers, delivered, { burn: body, token })
  if (sources.length === 0 || mint?.position !== position) return false
  const { nonce } = delivered
  const ours = database.kysely
    .selectFrom('swap_order')
    .select('id')
    .where('account_id', '=', accountId)
    .where('to_chain', '=', chain.name)
  const known = await ours
    .where('message_nonce', '=', nonce)
    .where('state', '!=', 'failed')
    .executeTakeFirst()
  if (known !== undefined) return true
  const bound = await database.kysely
    .updateTable('swap_order')
    .set({ message_nonce: nonce, look_at: null })
    .where('message_nonce', 'is', null)
    .where('id', 'in', () =>
      ours
        .where('state', 'in', ['submitted', 'bridging'])
        .where('message_nonce', 'is', null)
        .where('chain', 'in', sources)
        .where('buy', '=', asset)
        .where('units', '=', body.units)
        .where('min_received', '=', body.units - body.maxFee)
        .orderBy('id')
        .limit(1)
        .forUpdate(),
    )
    .returning('id')
    .executeTakeFirst()
  return bound !== undefined
}

/** Checks whether a transfer fills the purse for a purchase, or the escrow by a pull: then its end books it there. */
async function isFunding(
  { kysely }: Connection,
  { decisionId }: Booked,
  { place }: { readonly place: string },
): Promise<boolean> {
  if (decisionId === null) return false
  const fill = kysely
    .selectFrom('purchase')
    .select('decision_id')
    .where('decision_id', '=', decisionId)
    .where(sql<boolean>`'purse.' || purse_id = ${place}`)
  const pull = kysely.selectFrom('card_pull').select('decision_id').where('decision_id', '=', decisionId)
  return (await fill.unionAll(pull).executeTakeFirst()) !== undefined
}

/** Checks whether a movement is a purse's return of its money, which is booked elsewhere. */
async function isSweep({ kysely }: Database, { from, authorization }: TransferLog): Promise<boolean> {
  if (authorization === null || authorization.authorizer !== from) return false
  const row = await kysely
    .selectFrom('purse_sweep')
    .innerJoin('purse', 'purse.id', 'purse_sweep.purse_id')
    .select('purse_sweep.id')
    .where('purse.address', '=', from)
    .where('nonce', '=', authorization.nonce)
    .executeTakeFirst()
  return row !== undefined
}

/**
 * Checks whether a transaction is the one that carried a relay. A reorganization may have replaced the recorded
 * transaction. While the recorded one stands, it paid the relay, and any other transaction with the same mark is a
 * separate payment.
 */
async function carriesRelay(
  parts: MovementParts,
  relay: Relay,
  transaction: CalledTransaction,
): Promise<boolean> {
  const { chain } = parts
  const payment = toExpected(chain, relay.payment)
  const mark = relayMark(parts, relay)
  if (!isMarked(transaction, mark) || !isPaidBy(transaction, payment)) return false
  const { state, transactionHash } = relay
  if (state !== 'confirmed' || transactionHash === null || transactionHash === transaction.hash) return true
  return !(await isProvedBy(chain, payment, { carrier: { mark }, transactionHash }))
}

async function bookMovement(
  parts: MovementParts,
  {
    transaction,
    transfer,
    receiver,
    sender,
  }: Pick<Movement, 'transaction' | 'transfer'> & {
    readonly receiver: Pick<Arrival, 'accountId' | 'place'> | undefined
    readonly sender: string | undefined
  },
): Promise<void> {
  const { database, chain, clock, log } = parts
  const { from, to, units, position } = transfer
  const asset = stablecoinAt(chain, transfer.token)
  if (asset === undefined) return
  const money = { asset, units }
  const identity = await chain.identity()
  const reference = transaction.hash
  const name = `${identity}:${reference}:${position}`
  const at = clock()
  const facts = { transaction: reference, asset, amount: toDecimal(money) }
  if (receiver !== undefined) {
    const movement = `deposit:${name}`
    const arrival = {
      movement,
      ...receiver,
      identity,
      transactionHash: reference,
      money,
      sender: from,
    }
    if (await creditOrKeep(parts, arrival)) log.info({ ...facts, address: to }, 'a deposit was credited')
  }
  if (sender === undefined) return
  await database.transaction((connection) =>
    withdraw(connection, {
      id: `withdrawal:${name}`,
      accountId: sender,
      place: chain.name,
      money,
      reference,
      at,
    }),
  )
  log.warn({ ...facts, address: from }, 'tokens left a wallet without an operation of the gateway')
}

/**
 * Books a withdrawal as far as the money is not held. Missing held money is a shortfall, which `reconcileWallet`
 * records.
 */
async function withdraw(
  connection: Connection,
  {
    id,
    accountId,
    place,
    money,
    reference,
    at,
  }: {
    id: string
    accountId: string
    place: string
    money: { asset: Stablecoin; units: bigint }
    reference: string
    at: Date
  },
): Promise<void> {
  const { asset, units } = money
  const sources = [available(accountId, place), frozen(accountId, place)] as const
  const spendable = await lockUnits(connection, sources[0], asset)
  const lost = await lockUnits(connection, sources[1], asset)
  // Frozen money was found missing before its log was read, so the withdrawal consumes it first.
  const fromFrozen = minimum(lost, units)
  const fromAvailable = minimum(spendable, units - fromFrozen)
  const shares = [
    { source: sources[0], units: fromAvailable },
    { source: sources[1], units: fromFrozen },
  ].filter((share) => share.units > 0n)
  if (shares.length === 0) return
  await post(connection, {
    id,
    kind: 'withdrawal',
    reference,
    at,
    postings: shares.map((share) => ({
      source: share.source,
      destination: external(place),
      money: { asset, units: share.units },
    })),
  })
}

function stablecoinAt({ tokens }: Pick<Chain, 'tokens'>, token: Address): Stablecoin | undefined {
  return stablecoins.find((symbol) => tokens[symbol]?.toLowerCase() === token)
}
