/**
 * Finds deposits and withdrawals by scanning the chain's transfers from a stored cursor; the cost does not depend on
 * the number of wallets.
 */
import type { Chain } from '../../providers/chain/port.ts'
import { bookMovements, findPlacesByAddress } from '../../rails/wallets/reconcile/book-movements.ts'
import {
  adoptChain,
  type ChainBlock,
  endVerification,
  findCursor,
  moveCursor,
  readHead,
  recordVerification,
} from '../../rails/wallets/reconcile/chain-cursor.ts'
import { type ReconciliationDependencies, reconcileWallet } from '../../rails/wallets/reconcile/reconcile.ts'
import { findUnexplainedTransfers } from '../../rails/wallets/reconcile/settled-movements.ts'
import { findWalletsByAddress } from '../../rails/wallets/store.ts'
import { MAX_REORGANIZATION_MS, verifySettled } from './verify-settled.ts'

/** Maximum blocks per search; reduced when the node refuses the range. */
const MAX_RANGE_BLOCKS = 2_000n

/** Blocks re-read after a reorganization. */
const REORGANIZED_BLOCKS = 64n

/** Interval between checks for settlements lost in a reorganization. */
const VERIFY_MS = 5_000

/** Maximum delay between reading evidence and booking it, across a reorganization or a crash. */
const BOOKED_WITHIN_MS = 60_000

/**
 * Creates the job's round, which remembers the block range that the node accepts. A round on a chain that has not moved
 * since the last one reads nothing from the database. @returns the number of transfers that were booked.
 */
export function createWatchChain(
  parts: ReconciliationDependencies,
): (signal: AbortSignal) => Promise<number> {
  const { database, chain, clock } = parts
  let width = MAX_RANGE_BLOCKS
  let verification: Verification | undefined
  let isFirst = true
  let quiet: ChainBlock | undefined
  return async (signal) => {
    if (quiet !== undefined && verification === undefined && (await isUnmoved(chain, quiet))) return 0
    quiet = undefined
    let booked = 0
    const cursor = await findCursor(database, chain)
    const identity = await chain.identity()
    if (cursor === undefined || cursor.identity !== identity) {
      // The sandbox adopts a replaced development chain after restoring its balances.
      if (cursor === undefined || !chain.isGasFree)
        await adoptChain(database, chain, { ...(await readHead(chain)), at: clock() })
      return 1
    }
    const from = await startAfter(chain, cursor)
    const areReplaced = await chain.areBlocksReplaced()
    const isReplaced = from <= cursor.block.number || areReplaced
    if (isReplaced) await chain.forget()
    const now = clock().getTime()
    if (isReplaced || isFirst) {
      // After a restart, evidence read above the cursor may be lost, so it is verified again.
      const reach = isReplaced ? now - MAX_REORGANIZATION_MS : cursor.at.getTime() - BOOKED_WITHIN_MS
      const since = Math.min(reach, cursor.verifySince?.getTime() ?? reach)
      await recordVerification(database, chain, new Date(since))
      verification = { noted: since, since, until: isReplaced ? now + BOOKED_WITHIN_MS : now, dueAt: now }
      isFirst = false
    }
    const current = verification
    if (current !== undefined && current.dueAt <= now) {
      const { noted, since, until } = current
      current.dueAt = now + VERIFY_MS
      // Settlements on a replaced chain are part of the balances restored on this one.
      const settledFrom = new Date(Math.max(since, cursor.adoptedAt.getTime()))
      const missing = await verifySettled(parts, { since: settledFrom, identity }, signal)
      if (missing === 0 && !signal.aborted) {
        // Verified settlements are tracked by block from here on; only later bookings remain to be checked.
        current.since = Math.max(since, now - BOOKED_WITHIN_MS)
        if (until <= now && verification === current) {
          verification = undefined
          await endVerification(database, chain, new Date(noted))
        }
      }
    }
    const latest = await chain.blockNumber()
    const last = chain.isGasFree ? latest : latest - chain.confirmations
    for (let next = from, seen: ChainBlock = cursor; next <= last && !signal.aborted; ) {
      const to = next + width - 1n < last ? next + width - 1n : last
      try {
        booked += await search(parts, next, to)
      } catch (error) {
        if (width === 1n) throw error
        width = width > 4n ? width / 4n : 1n
        throw error
      }
      const block = await chain.block(to)
      if (block === undefined) return booked
      await moveCursor(database, chain, { block, from: seen, at: clock() })
      seen = { identity, block }
      next = to + 1n
      width = width * 2n < MAX_RANGE_BLOCKS ? width * 2n : MAX_RANGE_BLOCKS
      if (to === last && last === latest) quiet = seen
    }
    if (from > last && last === latest) quiet = cursor
    return booked
  }
}

/** Checks whether a block is still the head of the same chain. */
async function isUnmoved(chain: Chain, { identity, block }: ChainBlock): Promise<boolean> {
  if ((await chain.blockNumber()) !== block.number || (await chain.identity()) !== identity) return false
  return (await chain.block(block.number))?.hash === block.hash
}

/**
 * A repeated search for settlements lost by the chain. Times in ms. @property noted stored start of the whole search.
 * @property since start of the remaining search. @property until earliest end.
 */
interface Verification {
  readonly noted: number
  since: number
  readonly until: number
  dueAt: number
}

/** Returns the first block to search. Movements are keyed by their logs, so searching twice books nothing twice. */
async function startAfter(chain: Chain, { block }: ChainBlock): Promise<bigint> {
  const { number } = block
  if ((await chain.block(number))?.hash === block.hash) return number + 1n
  return number > REORGANIZED_BLOCKS ? number - REORGANIZED_BLOCKS : 0n
}

async function search(
  parts: ReconciliationDependencies,
  fromBlock: bigint,
  toBlock: bigint,
): Promise<number> {
  const { database, chain, log } = parts
  const found = await chain.findTransfers({ fromBlock, toBlock })
  const wallets = await findWalletsByAddress(
    database,
    found.flatMap(({ from, to }) => [from, to]),
  )
  const places = await findPlacesByAddress(
    parts,
    found.map(({ to }) => to),
  )
  const relevant = found.filter(({ from, to }) => wallets.has(from) || wallets.has(to) || places.has(to))
  const unexplained = await findUnexplainedTransfers(parts, relevant)
  for (const hash of unexplained)
    for (const address of await bookMovements(parts, hash)) {
      const accountId = wallets.get(address)
      if (accountId === undefined) continue
      await reconcileWallet(parts, { accountId, address }, { isEvident: true }).catch((err: unknown) =>
        log.warn({ err, chain: chain.name, address }, 'comparing a wallet failed'),
      )
    }
  return unexplained.size
}
