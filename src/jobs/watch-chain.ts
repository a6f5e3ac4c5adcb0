/** Finds deposits and withdrawals: reads the chain's transfers from a kept cursor on, however many wallets there are. */
import type { Chain } from '../providers/chain.ts'
import { bookMovements } from '../wallets/reconcile/book-movements.ts'
import {
  adoptChain,
  type ChainBlock,
  endVerification,
  findCursor,
  headOf,
  moveCursor,
  noteVerification,
} from '../wallets/reconcile/chain-cursor.ts'
import { type ReconciliationDependencies, reconcileWallet } from '../wallets/reconcile/reconcile.ts'
import { findUnexplainedTransfers } from '../wallets/reconcile/settled-movements.ts'
import { walletsAt } from '../wallets/store.ts'
import { MAX_REORGANIZATION_MS, verifySettled } from './verify-settled.ts'

/** Blocks a search covers at most; fewer where the node refuses so many. */
const WIDEST_BLOCKS = 2_000n

/** How many blocks are read again after a reorganization. */
const REORGANIZED_BLOCKS = 64n

/** Blocks that must lie above one before what it moved is believed, where the chain is not the gateway's own. */
const CONFIRMATIONS = 2n

/** The pause between two looks for what a reorganization has taken back. */
const VERIFY_MS = 5_000

/** Evidence that was read just before a reorganization, or before a process died, is booked no later than this. */
const BOOKED_WITHIN_MS = 60_000

/** A job's round. It remembers how wide a range the node answers. */
export function createWatchChain(parts: ReconciliationDependencies): (signal: AbortSignal) => Promise<void> {
  const { database, chain, clock } = parts
  let width = WIDEST_BLOCKS
  let verification: Verification | undefined
  let isFirst = true
  return async (signal) => {
    const cursor = await findCursor(database, chain)
    const identity = await chain.identity()
    if (cursor === undefined || cursor.identity !== identity) {
      // A development chain that was replaced is adopted once it is level with the books, by the sandbox.
      if (cursor === undefined || !chain.isGasFree)
        await adoptChain(database, chain, { ...(await headOf(chain)), at: clock() })
      return
    }
    const from = await startAfter(chain, cursor)
    const areReplaced = await chain.areBlocksReplaced()
    const isReplaced = from <= cursor.block.number || areReplaced
    if (isReplaced) await chain.forget()
    const now = clock().getTime()
    if (isReplaced || isFirst) {
      // Only a process that died remembered the blocks above the cursor that it had read evidence from.
      const reach = isReplaced ? now - MAX_REORGANIZATION_MS : cursor.at.getTime() - BOOKED_WITHIN_MS
      const since = Math.min(reach, cursor.verifySince?.getTime() ?? reach)
      await noteVerification(database, chain, new Date(since))
      verification = { noted: since, since, until: isReplaced ? now + BOOKED_WITHIN_MS : now, dueAt: now }
      isFirst = false
    }
    const current = verification
    if (current !== undefined && current.dueAt <= now) {
      const { noted, since, until } = current
      current.dueAt = now + VERIFY_MS
      // What was settled on another chain is in the balances that this one was brought up to.
      const settledFrom = new Date(Math.max(since, cursor.adoptedAt.getTime()))
      const missing = await verifySettled(parts, settledFrom, signal)
      if (missing === 0 && !signal.aborted) {
        // What was found has its blocks remembered from here on: only what is booked later remains to be seen.
        current.since = Math.max(since, now - BOOKED_WITHIN_MS)
        if (until <= now && verification === current) {
          verification = undefined
          await endVerification(database, chain, new Date(noted))
        }
      }
    }
    const latest = await chain.blockNumber()
    const last = chain.isGasFree ? latest : latest - CONFIRMATIONS
    for (let next = from, seen: ChainBlock = cursor; next <= last && !signal.aborted; ) {
      const to = next + width - 1n < last ? next + width - 1n : last
      try {
        await search(parts, next, to)
      } catch (error) {
        if (width === 1n) throw error
        width = width > 4n ? width / 4n : 1n
        throw error
      }
      const block = await chain.block(to)
      if (block === undefined) return
      await moveCursor(database, chain, { block, from: seen, at: clock() })
      seen = { identity, block }
      next = to + 1n
      width = width * 2n < WIDEST_BLOCKS ? width * 2n : WIDEST_BLOCKS
    }
  }
}

/**
 * A look for settlements that the chain has lost, repeated until none is missing. Times in ms.
 * @property noted how far back it reaches altogether, as the database remembers it.
 * @property since what was settled from then on. @property until when it goes on at least.
 */
interface Verification {
  readonly noted: number
  since: number
  readonly until: number
  dueAt: number
}

/** The first block that was not searched. Movements are booked by their logs, so that searching again books nothing twice. */
async function startAfter(chain: Chain, { block }: ChainBlock): Promise<bigint> {
  const { number } = block
  if ((await chain.block(number))?.hash === block.hash) return number + 1n
  return number > REORGANIZED_BLOCKS ? number - REORGANIZED_BLOCKS : 0n
}

async function search(parts: ReconciliationDependencies, fromBlock: bigint, toBlock: bigint): Promise<void> {
  const { database, chain, log } = parts
  const found = await chain.findTransfers({ fromBlock, toBlock })
  const wallets = await walletsAt(
    database,
    found.flatMap(({ from, to }) => [from, to]),
  )
  const relevant = found.filter(({ from, to }) => wallets.has(from) || wallets.has(to))
  for (const hash of await findUnexplainedTransfers(parts, relevant))
    for (const address of await bookMovements(parts, hash)) {
      const accountId = wallets.get(address)
      if (accountId === undefined) continue
      await reconcileWallet(parts, { accountId, address }, { isEvident: true }).catch((err: unknown) =>
        log.warn({ err, address }, 'a wallet cannot be compared yet'),
      )
    }
}
