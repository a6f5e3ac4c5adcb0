/**
 * Ends of swaps. What left is booked with the transfer to the desk; what arrived, and what came back unsold, is booked here from the
 * `Transfer` logs of the same operation, once. An aggregator's word books nothing.
 */
import { available, external } from '../../books/ledger/accounts.ts'
import { post } from '../../books/ledger/post.ts'
import type { Clock } from '../../core/base/clock.ts'
import type { Log } from '../../core/base/log.ts'
import type { Stablecoin } from '../../core/money/money.ts'
import { type Chain, type Hex, tokenAddress } from '../../providers/chain/port.ts'
import type { Connection, Database } from '../../storage/database.ts'
import { type Transfer, toOperation } from '../wallets/store.ts'
import { endSwap, findSwap, findTransferOfSwap, type SwapOrder } from './orders.ts'
import { advanceBridge, type BridgeDependencies, bookBurn, isBridge } from './settle-bridge.ts'

export interface SwapDependencies {
  readonly database: Database
  readonly chain: Pick<
    Chain,
    'name' | 'tokens' | 'swapDesk' | 'transaction' | 'hashOperation' | 'walletAddress'
  >
  readonly clock: Clock
  readonly log: Log
}

/** What swaps between chains need, too. */
export type AnySwapDependencies = SwapDependencies & BridgeDependencies

/** Books the next step or the end of a swap if its transfer has ended. Safe to repeat. @returns the swap as it is then. */
export async function settleSwap(parts: AnySwapDependencies, swap: SwapOrder): Promise<SwapOrder> {
  const { database, clock, log } = parts
  const { decisionId, id } = swap
  if (swap.state === 'bridging') return isBridge(swap) ? advanceBridge(parts, swap) : swap
  const transfer = await findTransferOfSwap(database, swap)
  if (transfer === undefined) {
    // The transfer is written while the money is held. Where it is not any more, none will be.
    if (await isReleased(database, decisionId))
      await endSwap(database, id, { state: 'failed', failure: 'it was never sent' }, clock())
  } else if (transfer.state === 'failed') {
    await endSwap(database, id, { state: 'failed', failure: transfer.failure ?? 'it was not made' }, clock())
  } else if (transfer.state === 'confirmed' && transfer.transactionHash !== null) {
    const { id: transferId, transactionHash: hash } = transfer
    if (isBridge(swap)) {
      if ((await parts.chain.transaction(hash)) === undefined) return swap
      await bookBurn(parts, swap, {
        hash,
        lock: (connection) => lockConfirmed(connection, { id: transferId, hash }),
      })
      return (await findSwap(database, { decisionId })) ?? swap
    }
    const arrived = await readArrival(parts, transfer, { buy: swap.buy, hash: transfer.transactionHash })
    if (arrived === undefined) return swap
    if (arrived.received < swap.minReceived)
      log.error(
        { swapId: id, received: String(arrived.received), minReceived: String(swap.minReceived) },
        'a swap brought less than the desk lets pass',
      )
    await bookArrival(parts, swap, { ...arrived, transferId: transfer.id, hash: transfer.transactionHash })
  }
  return (await findSwap(database, { decisionId })) ?? swap
}

interface Arrival {
  readonly received: bigint
  readonly unsold: bigint
}

/** Sums what the desk handed to the wallet in the swap's own operation; undefined while its transaction is not readable. */
export async function readArrival(
  { chain }: SwapDependencies,
  transfer: Transfer,
  { buy, hash }: { readonly buy: Stablecoin; readonly hash: Hex },
): Promise<Arrival | undefined> {
  const transaction = await chain.transaction(hash)
  if (transaction === undefined) return undefined
  const operation = toOperation(transfer)
  const operationHash = chain.hashOperation(operation)
  const wallet = await chain.walletAddress(operation.wallet)
  const sum = (token: Stablecoin) =>
    transaction.transfers
      .filter(
        (log) =>
          log.operationHash === operationHash &&
          isSame(log.token, tokenAddress(chain, token)) &&
          isSame(log.from, chain.swapDesk) &&
          isSame(log.to, wallet),
      )
      .reduce((units, log) => units + log.units, 0n)
  return { received: sum(buy), unsold: sum(transfer.token) }
}

async function bookArrival(
  { database, chain, clock }: SwapDependencies,
  { id, accountId, buy, sell }: SwapOrder,
  { received, unsold, hash, transferId }: Arrival & { readonly hash: Hex; readonly transferId: string },
): Promise<void> {
  const at = clock()
  const place = chain.name
  await database.transaction(async (connection) => {
    // Its block may have been replaced since it was read, and the transfer reversed.
    if (!(await lockConfirmed(connection, { id: transferId, hash }))) return
    if (!(await endSwap(connection, id, { state: 'confirmed', received, unsold, transactionHash: hash }, at)))
      return
    const arrivals = [
      { asset: buy, units: received },
      { asset: sell, units: unsold },
    ].filter(({ units }) => units > 0n)
    if (arrivals.length === 0) return
    await post(connection, {
      id: `swap:${id}`,
      kind: 'swap',
      reference: id,
      at,
      postings: arrivals.map((money) => ({
        source: external(place),
        destination: available(accountId, place),
        money,
      })),
    })
  })
}

/** Locks a transfer's row. @returns whether it is confirmed in that transaction. */
async function lockConfirmed(
  { kysely }: Connection,
  { id, hash }: { readonly id: string; readonly hash: Hex },
): Promise<boolean> {
  const row = await kysely
    .selectFrom('transfer')
    .select('id')
    .where('id', '=', id)
    .where('state', '=', 'confirmed')
    .where('transaction_hash', '=', hash)
    .forUpdate()
    .executeTakeFirst()
  return row !== undefined
}

async function isReleased({ kysely }: Database, decisionId: string): Promise<boolean> {
  const row = await kysely
    .selectFrom('reservation')
    .select('status')
    .where('decision_id', '=', decisionId)
    .executeTakeFirst()
  return row?.status === 'released'
}

function isSame(one: string, other: string): boolean {
  return one.toLowerCase() === other.toLowerCase()
}
