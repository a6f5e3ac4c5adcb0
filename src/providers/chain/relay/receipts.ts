/**
 * Receipts, asked for directly. viem's own wait looks again only when a new block comes, and on a node that makes a block
 * for each transaction none may come: one look too early and it never ends.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { type TransactionReceipt, TransactionReceiptNotFoundError } from 'viem'
import type { Hex } from '../../chain.ts'
import type { NodeClient } from '../rpc/client.ts'

/** The longest pause between two questions: many wait at once when the node is busiest, so each asks less and less often. */
const LONGEST_PAUSES = 16

/** The pauses between questions, in milliseconds: the client's own interval, then longer ones. */
export function* pausesOf(client: NodeClient): Generator<number, never> {
  for (let times = 1; ; times = Math.min(times * 2, LONGEST_PAUSES)) yield client.pollingInterval * times
}

/** The receipt, if the transaction is in a block. */
export async function findReceipt(client: NodeClient, hash: Hex): Promise<TransactionReceipt | undefined> {
  try {
    return await client.getTransactionReceipt({ hash })
  } catch (error) {
    if (error instanceof TransactionReceiptNotFoundError) return undefined
    throw error
  }
}

/** Waits for the receipt. @throws Error where it does not come within `timeoutMs`. */
export async function awaitReceipt(
  client: NodeClient,
  hash: Hex,
  timeoutMs: number,
): Promise<TransactionReceipt> {
  const deadline = AbortSignal.timeout(timeoutMs)
  for (const pauseMs of pausesOf(client)) {
    const receipt = await findReceipt(client, hash)
    if (receipt !== undefined) return receipt
    if (deadline.aborted) break
    await sleep(pauseMs)
  }
  throw new Error(`Transaction ${hash} was not confirmed within ${timeoutMs} ms.`)
}
