/**
 * Direct polling of receipts. viem's own wait polls only on new blocks; on a node with one block per transaction
 * there may be none, so a poll just before the block would wait forever.
 */
import { type TransactionReceipt, TransactionReceiptNotFoundError } from 'viem'
import { timers } from '../../core/base/timers.ts'
import type { Hex } from '../../providers/chain/port.ts'
import type { NodeClient } from '../rpc/client.ts'

/**
 * Longest pause between polls, as a multiple: many callers wait when the node is busiest, so each polls less and less
 * often.
 */
const MAX_PAUSE_FACTOR = 16

/** Yields the pauses between polls in milliseconds: the client's interval, then increasing multiples. */
export function* generatePauses(client: NodeClient): Generator<number, never> {
  for (let times = 1; ; times = Math.min(times * 2, MAX_PAUSE_FACTOR)) yield client.pollingInterval * times
}

/** Reads the receipt of a transaction if it is in a block. */
export async function findReceipt(client: NodeClient, hash: Hex): Promise<TransactionReceipt | undefined> {
  try {
    return await client.getTransactionReceipt({ hash })
  } catch (error) {
    if (error instanceof TransactionReceiptNotFoundError) return undefined
    throw error
  }
}

/** Waits for a receipt. @throws Error when it does not arrive within `timeoutMs`. */
export async function awaitReceipt(
  client: NodeClient,
  hash: Hex,
  timeoutMs: number,
): Promise<TransactionReceipt> {
  const deadline = timers.deadline(timeoutMs)
  for (const pauseMs of generatePauses(client)) {
    const receipt = await findReceipt(client, hash)
    if (receipt !== undefined) return receipt
    if (deadline.aborted) break
    await timers.sleep(pauseMs)
  }
  throw new Error(`Transaction ${hash} was not confirmed within ${timeoutMs} ms.`)
}
