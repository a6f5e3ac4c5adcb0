/** Transfers on one node: simulated, broadcast at most once, and looked up. */
import { setTimeout as sleep } from 'node:timers/promises'
import { BaseError, TransactionNotFoundError } from 'viem'
import { Failure } from '../../failure.ts'
import type { Address, ChainTransfer, Hex, Submission, TransferOutcome } from '../chain.ts'
import type { NodeClient } from './client.ts'
import {
  type Execution,
  executionIn,
  findExecution,
  isExecuted,
  type LogSearch,
  type OperationKey,
} from './executions.ts'
import { awaitReceipt, findReceipt, pausesOf } from './receipts.ts'
import { refusalOf } from './refusal.ts'
import type { Relayer } from './relayer.ts'
import type { SafeAccount, SafeOf } from './safe.ts'
import { nonceOf, type OperationMaker, signOperation, transferCall } from './user-operation.ts'

/** What transfers are made with. */
export interface TransferOptions {
  readonly client: NodeClient
  readonly relayer: Relayer
  readonly safeOf: SafeOf
  readonly maker: OperationMaker
  readonly logSearch: LogSearch | undefined
}

/** The two halves of the port that transfers need. */
export interface Transfers {
  submit(transfer: ChainTransfer): Promise<Submission>
  outcomeOf(transfer: ChainTransfer, waitMs: number): Promise<TransferOutcome>
  isDeployed(safe: Address): Promise<boolean>
}

/** A transaction that carried a transfer, and what came of it where that is known. */
interface Broadcast {
  readonly hash: Hex
  readonly execution: Execution | undefined
}

/** How many broadcasts are remembered; older ones are found by their event. */
const REMEMBERED = 20_000

/** How long the first operation of an account may take before the next ones try too. */
const DEPLOYMENT_TIMEOUT_MS = 10_000

/** Transfers on a node that is set up. */
export function createTransfers({ client, relayer, safeOf, maker, logSearch }: TransferOptions): Transfers {
  const { contracts, tokens } = maker
  const broadcast = new Map<string, Broadcast>()
  const running = new Map<string, Promise<Submission>>()
  const deployed = new Set<Address>()
  const deploying = new Map<Address, Promise<void>>()

  const keyOf = (transfer: ChainTransfer, sender: Address): OperationKey => ({
    entryPoint: contracts.entryPoint,
    sender,
    nonce: nonceOf(transfer.transferId),
  })

  async function isDeployed(safe: Address): Promise<boolean> {
    if (deployed.has(safe)) return true
    if (!(await client.getCode({ address: safe }))) return false
    deployed.add(safe)
    return true
  }

  function submit(transfer: ChainTransfer): Promise<Submission> {
    const first = running.get(transfer.transferId)
    if (first !== undefined) return first
    const submission = submitOnce(transfer)
      .catch((error: unknown) => {
        // The relayer throws its own error where a broadcast's fate is unknown: the node's come before anything went out.
        throw error instanceof BaseError ? unavailable('The chain took no transaction.', error) : error
      })
      .finally(() => running.delete(transfer.transferId))
    running.set(transfer.transferId, submission)
    return submission
  }

  async function submitOnce(transfer: ChainTransfer): Promise<Submission> {
    const known = broadcast.get(transfer.transferId)
    if (known !== undefined) {
      const outcome = await outcomeOf(transfer, 0)
      if (outcome.status !== 'absent')
        return { status: 'submitted', transactionHash: hashOf(outcome) ?? known.hash }
    }
    const safe = safeOf(transfer.accountId)
    // Only one operation may create the Safe; the others of the account wait for it and then go all at once.
    while (!(await isDeployed(safe.address))) {
      const first = deploying.get(safe.address)
      if (first === undefined) return deployWith(transfer, safe)
      await first
    }
    return broadcastOperation(transfer, safe, '0x')
  }

  function deployWith(transfer: ChainTransfer, safe: SafeAccount): Promise<Submission> {
    const submission = broadcastOperation(transfer, safe, safe.initCode)
    const settled = submission
      .then(async (made) => {
        if (made.status === 'refused') return
        await awaitReceipt(client, made.transactionHash, DEPLOYMENT_TIMEOUT_MS)
      })
      // Its own caller learns of a failure; the waiting ones only need to know that it is their turn.
      .catch(() => undefined)
      .finally(() => deploying.delete(safe.address))
    deploying.set(safe.address, settled)
    return submission
  }

  async function broadcastOperation(
    transfer: ChainTransfer,
    safe: SafeAccount,
    initCode: Hex,
  ): Promise<Submission> {
    const call = await signOperation(maker, transfer, safe.address, initCode)
    const [{ refusal: operationRefusal }, transferRefusal] = await Promise.all([
      simulate(relayer.address, call),
      refusalOfTransfer(transfer, safe.address),
    ])
    if (operationRefusal?.startsWith('AA10') && initCode !== '0x') {
      deployed.add(safe.address)
      return broadcastOperation(transfer, safe, '0x')
    }
    if (operationRefusal !== undefined || transferRefusal !== undefined) {
      // Asked after the simulation: it also fails where this very transfer was executed just before.
      const executed = await executionOf(keyOf(transfer, safe.address))
      if (executed === 'pending')
        throw new Error(`Transfer ${transfer.transferId} is pending from an earlier submission.`)
      if (executed !== undefined) return { status: 'submitted', transactionHash: executed.transactionHash }
      return { status: 'refused', reason: transferRefusal ?? operationRefusal ?? 'refused' }
    }
    const { hash, receipt } = await relayer.send(call)
    remember(transfer.transferId, {
      hash,
      execution: receipt && executionIn(receipt, keyOf(transfer, safe.address)),
    })
    return { status: 'submitted', transactionHash: hash }
  }

  async function refusalOfTransfer(transfer: ChainTransfer, safe: Address): Promise<string | undefined> {
    const token = tokens[transfer.token]
    const { refusal, data } = await simulate(safe, { to: token, data: transferCall(transfer) })
    // Nearly every token answers; one that answers nothing may not be there at all, and a call to nothing succeeds.
    if (refusal === undefined && data === undefined && !(await client.getCode({ address: token })))
      throw unavailable(`There is no contract of ${transfer.token} at ${token} on this chain.`)
    return refusal
  }

  async function simulate(account: Address, call: { to: Address; data: Hex; gas?: bigint }) {
    try {
      const { data } = await client.call({ account, ...call })
      return { refusal: undefined, data }
    } catch (error) {
      const refusal = refusalOf(error)
      if (refusal === undefined) throw error
      return { refusal, data: undefined }
    }
  }

  async function executionOf(key: OperationKey): Promise<Execution | 'pending' | undefined> {
    if (await isExecuted(client, key, 'latest')) return findExecution(client, key, logSearch)
    return (await isExecuted(client, key, 'pending')) ? 'pending' : undefined
  }

  async function outcomeOf(transfer: ChainTransfer, waitMs: number): Promise<TransferOutcome> {
    const key = keyOf(transfer, safeOf(transfer.accountId).address)
    const deadline = AbortSignal.timeout(waitMs)
    for (const pauseMs of pausesOf(client)) {
      const outcome = await outcomeNow(transfer.transferId, key)
      if (outcome.status !== 'pending' || deadline.aborted) return outcome
      await sleep(pauseMs)
    }
    return { status: 'pending' }
  }

  async function outcomeNow(transferId: string, key: OperationKey): Promise<TransferOutcome> {
    const made = broadcast.get(transferId)
    const receipt = made && !made.execution ? await findReceipt(client, made.hash) : undefined
    if (made && !made.execution && !receipt && (await isPending(made.hash))) return { status: 'pending' }
    const known = made?.execution ?? (receipt && executionIn(receipt, key))
    const execution = known ?? (await executionOf(key))
    if (execution === 'pending') return { status: 'pending' }
    if (execution === undefined) {
      broadcast.delete(transferId)
      return { status: 'absent' }
    }
    return { status: execution.success ? 'confirmed' : 'failed', transactionHash: execution.transactionHash }
  }

  async function isPending(hash: Hex): Promise<boolean> {
    try {
      await client.getTransaction({ hash })
      return true
    } catch (error) {
      if (error instanceof TransactionNotFoundError) return false
      throw error
    }
  }

  function remember(transferId: string, made: Broadcast): void {
    broadcast.set(transferId, made)
    for (const oldest of broadcast.keys()) {
      if (broadcast.size <= REMEMBERED) return
      broadcast.delete(oldest)
    }
  }

  return { submit, outcomeOf, isDeployed }
}

function hashOf(outcome: TransferOutcome): Hex | undefined {
  return 'transactionHash' in outcome ? outcome.transactionHash : undefined
}

function unavailable(detail: string, cause?: unknown): Failure {
  return new Failure('provider_unavailable', detail, { retryAfter: 2 }, { cause })
}
