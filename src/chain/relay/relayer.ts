/**
 * Relayers broadcast at the sponsor's expense: one key with a queue on a public chain, many keys on a development
 * node.
 */
import { BaseError, TransactionNotFoundError, type TransactionReceipt } from 'viem'
import { type Address, type Hex, unknownBroadcast } from '../../providers/chain/port.ts'
import type { NodeClient } from '../rpc/client.ts'
import { isConnectionError } from './refusal.ts'

/**
 * A call paid by the sponsor. @property gas maximum gas. @property value wei; default: none. @property beforeBroadcast awaited with the
 * hash of each transaction for the call, which is not broadcast if it throws.
 */
export interface SponsoredCall {
  readonly to: Address
  readonly data: Hex
  readonly gas: bigint
  readonly value?: bigint | undefined
  readonly beforeBroadcast?: ((hash: Hex) => Promise<void>) | undefined
}

/** A transaction that the node has accepted. @property receipt set if it is already in a block. */
export interface SubmittedTransaction {
  readonly hash: Hex
  readonly receipt?: TransactionReceipt | undefined
}

/**
 * Broadcasts transactions. Both methods throw the node's own error if nothing was broadcast, and {@link unknownBroadcast}
 * if that is unknown.
 */
export interface Relayer {
  /** The sponsor's first address, the only one that permits can name. */
  readonly address: Address
  /**
   * Sends from any address of the sponsor.
   * @param waitMs maximum wait for the receipt, if the relayer waits at all.
   */
  send(call: SponsoredCall, waitMs?: number): Promise<SubmittedTransaction>
  /** Sends from {@link address}. */
  sendAsSponsor(call: SponsoredCall, waitMs?: number): Promise<SubmittedTransaction>
  /** Drops cached nonces, which are then read from the node again. */
  forget(): void
}

/**
 * Receipt wait for callers that can continue without it: a development node that mines at once needs a few
 * milliseconds.
 */
export const SHORT_RECEIPT_WAIT_MS = 500

/** Wei per unit of gas. */
export interface Fees {
  readonly maxFeePerGas: bigint
  readonly maxPriorityFeePerGas: bigint
}

/**
 * Returns if the node has the transaction although sending it failed: it had it before, or its answer was lost.
 * @throws the node's rejection; {@link unknownBroadcast} when the result is unknown.
 */
export async function requireAcceptedByNode(client: NodeClient, hash: Hex, error: unknown): Promise<void> {
  if (error instanceof BaseError && /already (known|imported)/i.test(error.details)) return
  try {
    await client.getTransaction({ hash })
  } catch (answer) {
    if (answer instanceof TransactionNotFoundError && !isConnectionError(error)) throw error
    throw unknownBroadcast(`It is unknown whether the node accepted transaction ${hash}.`, { cause: error })
  }
}
