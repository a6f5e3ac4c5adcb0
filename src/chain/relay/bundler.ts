/**
 * Bundles operations of many wallets into one transaction. Operations arriving while bundles are pending wait and
 * then share one; without pending bundles nothing waits. Bundles are simulated first, and operations that the
 * EntryPoint rejects are removed at no cost.
 */
import type { TransactionReceipt } from 'viem'
import { timers } from '../../core/base/timers.ts'
import type { Address, Hex } from '../../providers/chain/port.ts'
import { handleOpsCall, type PackedOperation } from '../accounts/user-operation.ts'
import type { NodeClient } from '../rpc/client.ts'
import { type Execution, executionIn } from './executions.ts'
import type { ReadReceipt } from './read-receipt.ts'
import { findFailedOperation, findRefusal } from './refusal.ts'
import { type Relayer, SHORT_RECEIPT_WAIT_MS } from './relayer.ts'

/** Maximum gas of a bundle. Chains limit a transaction to 2^24. @see https://eips.ethereum.org/EIPS/eip-7825 */
const BUNDLE_GAS = 16_000_000n

/** Result of an operation. @property execution set if it is already in a block. */
export type Bundled =
  | { readonly status: 'sent'; readonly hash: Hex; readonly execution: Execution | undefined }
  | { readonly status: 'refused'; readonly reason: string }

/** Sends operations. Both methods throw like the relayer: an error of the node means that nothing was broadcast. */
export interface Bundler {
  send(operation: PackedOperation): Promise<Bundled>
}

interface Waiter {
  readonly operation: PackedOperation
  resolve(bundled: Bundled): void
  reject(error: unknown): void
}

/** Creates a bundler. @param maxPending maximum pending bundles; more would only share the node's time. */
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
  maxPending: number,
): Bundler {
  const waiting: Waiter[] = []
  let pendingCount = 0

  function departAll(): void {
    while (waiting.length > 0 && pendingCount < maxPending) {
      const bundle = takeBundle()
      pendingCount += 1
      void depart(bundle)
        .catch((error: unknown) => {
          for (const { reject } of bundle) reject(error)
        })
        .finally(() => {
          pendingCount -= 1
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
    const { hash, receipt } = await relayer.send(buildCall(taken), SHORT_RECEIPT_WAIT_MS)
    const found = receipt === undefined ? undefined : read(receipt)
    for (const { operation, resolve } of taken)
      resolve({ status: 'sent', hash, execution: found && executionIn(found, operation.packed) })
  }

  /** Removes the operations that the EntryPoint rejects, one by one, because it reports only the first. */
  async function withoutRefused(bundle: readonly Waiter[]): Promise<readonly Waiter[]> {
    let left = bundle
    while (left.length > 0) {
      try {
        await client.call({ account: relayer.address, ...buildCall(left) })
        return left
      } catch (error) {
        const failed = findFailedOperation(error)
        const reason = failed?.reason ?? findRefusal(error)
        if (reason === undefined) throw error
        // If the EntryPoint names no operation, each is simulated alone.
        if (failed === undefined && left.length > 1) return (await Promise.all(left.map(checkAlone))).flat()
        const index = failed?.index ?? 0
        left[index]?.resolve({ status: 'refused', reason })
        left = left.filter((_, other) => other !== index)
      }
    }
    return left
  }

  function checkAlone(waiter: Waiter): Promise<readonly Waiter[]> {
    return withoutRefused([waiter])
  }

  const buildCall = (waiters: readonly Waiter[]) =>
    handleOpsCall(
      entryPoint,
      relayer.address,
      waiters.map(({ operation }) => operation),
    )

  return {
    send: (operation) =>
      new Promise((resolve, reject) => {
        waiting.push({ operation, resolve, reject })
        // Operations submitted in the same turn of the event loop join the bundle.
        timers.soon(departAll)
      }),
  }
}
