/**
 * Operations of many wallets in one transaction. What comes while others are on their way waits for them and then travels
 * together; where nothing is on its way, nothing waits. Simulated before it is sent: what the EntryPoint refuses is taken
 * out, and costs nobody anything.
 */
import type { TransactionReceipt } from 'viem'
import type { Address, Hex } from '../../chain.ts'
import { handleOpsCall, type PackedOperation } from '../accounts/user-operation.ts'
import type { NodeClient } from '../rpc/client.ts'
import { type Execution, executionIn } from './executions.ts'
import type { ReadReceipt } from './read-receipt.ts'
import { failedOperationOf, refusalOf } from './refusal.ts'
import { type Relayer, SHORT_RECEIPT_WAIT_MS } from './relayer.ts'

/** The most gas of a bundle. Chains limit a transaction to 2^24. @see https://eips.ethereum.org/EIPS/eip-7825 */
const BUNDLE_GAS = 16_000_000n

/** What became of an operation. @property execution where it is in a block already. */
export type Bundled =
  | { readonly status: 'sent'; readonly hash: Hex; readonly execution: Execution | undefined }
  | { readonly status: 'refused'; readonly reason: string }

/** Sends operations. Both throw as the relayer does: an error of the node's own came before anything was broadcast. */
export interface Bundler {
  send(operation: PackedOperation): Promise<Bundled>
}

interface Waiter {
  readonly operation: PackedOperation
  resolve(bundled: Bundled): void
  reject(error: unknown): void
}

/** A bundler. @param mostOnTheirWay bundles; more of them only share the node's time. */
export function createBundler(
  {
    client,
    relayer,
    entryPoint,
    read,
  }: {
    client: NodeClient
    relayer: Relayer
    entryPoint: Address
    read: (receipt: TransactionReceipt) => ReadReceipt
  },
  mostOnTheirWay: number,
): Bundler {
  const waiting: Waiter[] = []
  let onTheirWay = 0

  function departAll(): void {
    while (waiting.length > 0 && onTheirWay < mostOnTheirWay) {
      const bundle = takeBundle()
      onTheirWay += 1
      void depart(bundle)
        .catch((error: unknown) => {
          for (const { reject } of bundle) reject(error)
        })
        .finally(() => {
          onTheirWay -= 1
          departAll()
        })
    }
  }

  function takeBundle(): Waiter[] {
    let gas = 0n
    const tooMany = waiting.findIndex(({ operation }) => {
      gas += operation.gas
      return gas > BUNDLE_GAS
    })
    return waiting.splice(0, tooMany <= 0 ? waiting.length : tooMany)
  }

  async function depart(bundle: readonly Waiter[]): Promise<void> {
    const taken = await withoutRefused(bundle)
    if (taken.length === 0) return
    const { hash, receipt } = await relayer.send(callOf(taken), SHORT_RECEIPT_WAIT_MS)
    const found = receipt === undefined ? undefined : read(receipt)
    for (const { operation, resolve } of taken)
      resolve({ status: 'sent', hash, execution: found && executionIn(found, operation.packed) })
  }

  /** Takes out what the EntryPoint refuses, one by one; it names the first only. */
  async function withoutRefused(bundle: readonly Waiter[]): Promise<readonly Waiter[]> {
    let left = bundle
    while (left.length > 0) {
      try {
        await client.call({ account: relayer.address, ...callOf(left) })
        return left
      } catch (error) {
        const failed = failedOperationOf(error)
        const reason = failed?.reason ?? refusalOf(error)
        if (reason === undefined) throw error
        // Where nobody is named, each is judged alone.
        if (failed === undefined && left.length > 1) return (await Promise.all(left.map(alone))).flat()
        const index = failed?.index ?? 0
        left[index]?.resolve({ status: 'refused', reason })
        left = left.filter((_, other) => other !== index)
      }
    }
    return left
  }

  function alone(waiter: Waiter): Promise<readonly Waiter[]> {
    return withoutRefused([waiter])
  }

  const callOf = (waiters: readonly Waiter[]) =>
    handleOpsCall(
      entryPoint,
      relayer.address,
      waiters.map(({ operation }) => operation),
    )

  return {
    send: (operation) =>
      new Promise((resolve, reject) => {
        waiting.push({ operation, resolve, reject })
        // Whatever else is asked for in this turn of the event loop travels along.
        setImmediate(departAll)
      }),
  }
}
