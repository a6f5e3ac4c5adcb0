/**
 * Deposits and withdrawals made outside the gateway: tokens sent directly to a wallet, or moved by its owner with an
 * own key. Each is booked once from its `Transfer` log, a deposit after its sender was screened; a balance alone books
 * nothing.
 */
import { zeroAddress } from 'viem'
import { isPaidBy, isProvedBy } from '../../evidence/payment-outcome.ts'
import { isMarked } from '../../evidence/transaction-mark.ts'
import { available, external, frozen } from '../../ledger/accounts.ts'
import { lockUnits } from '../../ledger/balances.ts'
import { post } from '../../ledger/post.ts'
import { decimalOf, type Stablecoin, stablecoins } from '../../money/money.ts'
import { minimum } from '../../money/shares.ts'
import {
  type Address,
  type CalledTransaction,
  type Chain,
  type Hex,
  MINT_MARK,
  type TransferLog,
} from '../../providers/chain.ts'
import type { Connection, Database } from '../../storage/database.ts'
import { expectedOf, relayMark } from '../relays/relay-outcome.ts'
import { findMatchingRelays, type Relay } from '../relays/relay-store.ts'
import { findMatchingTransfers, findWalletsByAddress, operationOf } from '../store.ts'
import { creditOrKeep, type DepositParts } from './movement-reviews.ts'

export interface MovementParts extends DepositParts {
  readonly settings: { readonly dataKey: Uint8Array }
}

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
  const left = new Set<Address>()
  for (const transfer of moved) {
    const { from, to, units } = transfer
    if (units === 0n || from === to || !(wallets.has(from) || wallets.has(to))) continue
    if (await isGatewayMovement(parts, { transaction, transfer, wallets })) continue
    await bookMovement(parts, { transaction, transfer, wallets })
    if (wallets.has(from)) left.add(from)
  }
  return [...left]
}

interface Movement {
  readonly transaction: CalledTransaction
  readonly transfer: TransferLog
  readonly wallets: Wallets
}

/** Checks whether a transfer or relay of the gateway made the movement; those are booked elsewhere. */
async function isGatewayMovement(
  parts: MovementParts,
  { transaction, transfer, wallets }: Movement,
): Promise<boolean> {
  const { database, chain } = parts
  const { from, to: destination, units, operationHash } = transfer
  const token = stablecoinAt(chain, transfer.token)
  if (token === undefined) return false
  const accountId = wallets.get(from)
  if (accountId === undefined) {
    for (const relay of await findMatchingRelays(parts, { payer: from, destination, token, units }))
      if (await isCarrierOf(parts, relay, transaction)) return true
    return isSweep(database, transfer)
  }
  if (operationHash === null) return false
  const sought = { accountId, destination, token, units, transaction: transaction.hash }
  // A reorganization may have moved the operation out of the transaction under which it was recorded.
  for (const others of [false, true])
    for (const candidate of await findMatchingTransfers(parts, { ...sought, others })) {
      // The chain executes an operation once, in any transaction.
      if (chain.operationHashOf(operationOf(candidate)) === operationHash) return true
    }
  return false
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
async function isCarrierOf(
  parts: MovementParts,
  relay: Relay,
  transaction: CalledTransaction,
): Promise<boolean> {
  const { chain } = parts
  const payment = expectedOf(chain, relay.payment)
  const mark = relayMark(parts, relay)
  if (!isMarked(transaction, mark) || !isPaidBy(transaction, payment)) return false
  const { state, transactionHash } = relay
  if (state !== 'confirmed' || transactionHash === null || transactionHash === transaction.hash) return true
  return !(await isProvedBy(chain, payment, { carrier: { mark }, transactionHash }))
}

async function bookMovement(
  parts: MovementParts,
  { transaction, transfer, wallets }: Movement,
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
  const [receiver, sender] = [wallets.get(to), wallets.get(from)]
  const facts = { transaction: reference, asset, amount: decimalOf(money) }
  if (receiver !== undefined) {
    const movement = `deposit:${name}`
    const arrival = {
      movement,
      accountId: receiver,
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
