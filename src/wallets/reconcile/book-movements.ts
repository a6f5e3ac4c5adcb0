/**
 * Deposits and withdrawals that no operation of the gateway made: somebody sent tokens straight to a wallet, or its owner
 * moved them with a key of their own. Each is booked from its own `Transfer` log, once; a balance alone books nothing.
 */
import { zeroAddress } from 'viem'
import type { Clock } from '../../base/clock.ts'
import type { Log } from '../../base/log.ts'
import { operationOutcome } from '../../evidence/operation-outcome.ts'
import { isPaidBy, isProvedBy } from '../../evidence/payment-outcome.ts'
import { isMarked } from '../../evidence/transaction-mark.ts'
import { available, external, frozen } from '../../ledger/accounts.ts'
import { lockUnits } from '../../ledger/balances.ts'
import { post } from '../../ledger/post.ts'
import { decimalOf, type Stablecoin, stablecoins } from '../../money/money.ts'
import { least } from '../../money/shares.ts'
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
import { type Relay, relaysLike } from '../relays/relay-store.ts'
import { lowerCase, operationOf, transfersLike, walletsAt } from '../store.ts'

/** What booking needs. */
export interface MovementParts {
  readonly database: Database
  readonly chain: Chain
  readonly clock: Clock
  readonly log: Log
  readonly settings: { readonly dataKey: Uint8Array }
}

/** Accounts by the address of their wallets, lower case. */
type Wallets = ReadonlyMap<Address, string>

/**
 * Books what a transaction moved to or from wallets of ours, as far as no operation of the gateway did.
 * @returns the wallets that tokens left.
 * @throws where chain or database cannot be read: book it again later.
 */
export async function bookMovements(parts: MovementParts, hash: Hex): Promise<readonly Address[]> {
  const { database, chain } = parts
  const transaction = await chain.transaction(hash)
  if (transaction === undefined) return []
  // Anybody can write the mark, but only minters make tokens from nothing.
  const isMint = isMarked(transaction, MINT_MARK)
  const moved = transaction.transfers.filter(
    ({ token, from }) => stablecoinAt(chain, token) !== undefined && !(isMint && from === zeroAddress),
  )
  const wallets = await walletsAt(
    database,
    moved.flatMap(({ from, to }) => [from, to]),
  )
  const left = new Set<Address>()
  for (const transfer of moved) {
    const { from, to, units } = transfer
    if (units === 0n || from === to || !(wallets.has(from) || wallets.has(to))) continue
    if (await isOurs(parts, { transaction, transfer, wallets })) continue
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

/** Whether a transfer or relay of the gateway made it, which books it itself. */
async function isOurs(parts: MovementParts, { transaction, transfer, wallets }: Movement): Promise<boolean> {
  const { database, chain } = parts
  const { from, to: destination, units, operationHash } = transfer
  const token = stablecoinAt(chain, transfer.token)
  if (token === undefined) return false
  const accountId = wallets.get(from)
  if (accountId === undefined) {
    for (const relay of await relaysLike(database, { payer: from, destination, token, units }))
      if (await isCarrierOf(parts, relay, transaction)) return true
    return false
  }
  if (operationHash === null) return false
  for (const candidate of await transfersLike(database, { accountId, destination, token, units })) {
    const operation = operationOf(candidate)
    // The chain executes an operation once, in whichever transaction.
    if (chain.operationHashOf(operation) !== operationHash) continue
    const { status } = await operationOutcome(chain, operation, 0)
    return status === 'confirmed'
  }
  return false
}

/**
 * Whether a transaction is the one that carried a relay. A reorganization may have put another in the place of the one that
 * is noted; while that one stands, the relay is paid, and whatever else bears its mark is another payment.
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
    const posting = { source: external(chain.name), destination: available(receiver, chain.name), money }
    const id = `deposit:${name}`
    const verdict = await post(database, { id, kind: 'deposit', reference, at, postings: [posting] })
    if (verdict === 'posted') log.info({ ...facts, address: to }, 'a deposit was credited')
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
  log.warn({ ...facts, address: from }, 'tokens left a wallet by no operation of the gateway')
}

/** Books what left as far as it is not held: what is held and gone is a shortfall, which `reconcileWallet` records. */
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
  // What is frozen already is what was missed before its log was read.
  const ofFrozen = least(lost, units)
  const ofAvailable = least(spendable, units - ofFrozen)
  const shares = [
    { source: sources[0], units: ofAvailable },
    { source: sources[1], units: ofFrozen },
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
  return stablecoins.find((symbol) => lowerCase(tokens[symbol]) === token)
}
