/** What broadcasts at the sponsor's expense: one key with a queue on a public chain, many keys on a development node. */
import { BaseError, TransactionNotFoundError, type TransactionReceipt } from 'viem'
import type { Address, Hex } from '../../chain.ts'
import type { NodeClient } from '../rpc/client.ts'
import { isConnectionError } from './refusal.ts'

/** A call that the sponsor pays for. @property gas the most it may use. @property value wei, by default none. */
export interface SponsoredCall {
  readonly to: Address
  readonly data: Hex
  readonly gas: bigint
  readonly value?: bigint | undefined
}

/** A transaction that the node has taken. @property receipt where it is in a block already. */
export interface SubmittedTransaction {
  readonly hash: Hex
  readonly receipt?: TransactionReceipt | undefined
}

/** Broadcasts. Both throw the node's own error where nothing was broadcast, and another one where nobody can tell. */
export interface Relayer {
  /** The sponsor's first address, the only one that permits can name. */
  readonly address: Address
  /** Sends from any address of the sponsor's. @param waitMs how long it may wait for the receipt, where it waits at all. */
  send(call: SponsoredCall, waitMs?: number): Promise<SubmittedTransaction>
  /** Sends from {@link address} itself. */
  sendAsSponsor(call: SponsoredCall, waitMs?: number): Promise<SubmittedTransaction>
  /** Drops the nonces that are remembered: the node is asked for them again. */
  forget(): void
}

/** For callers that go on without the receipt: a development node that mines at once needs a few milliseconds. */
export const SHORT_RECEIPT_WAIT_MS = 500

/** Wei a unit of gas. */
export interface Fees {
  readonly maxFeePerGas: bigint
  readonly maxPriorityFeePerGas: bigint
}

/**
 * Returns where the node has the transaction although sending it failed: it had it before, or its answer was lost.
 * @throws the node's refusal; an Error of our own where nobody can tell.
 */
export async function requireAcceptedByNode(client: NodeClient, hash: Hex, error: unknown): Promise<void> {
  if (error instanceof BaseError && /already (known|imported)/i.test(error.details)) return
  try {
    await client.getTransaction({ hash })
  } catch (answer) {
    if (answer instanceof TransactionNotFoundError && !isConnectionError(error)) throw error
    throw new Error(`It is not known whether the node took transaction ${hash}.`, { cause: error })
  }
}
