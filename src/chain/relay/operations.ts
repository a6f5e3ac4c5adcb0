/** Operations on one node: simulation, broadcast at most once, and lookup. */
import { BaseError, TransactionNotFoundError, type TransactionReceipt } from 'viem'
import { timers } from '../../core/base/timers.ts'
import { Failure } from '../../core/failures/failure.ts'
import type {
  Address,
  AuthorizedOperation,
  ChainOperation,
  Hex,
  OperationExecution,
  SignableOperation,
  Submission,
  TokenAddresses,
} from '../../providers/chain/port.ts'
import { buildAllowanceCall } from '../accounts/allowances.ts'
import type { KeyRing } from '../accounts/key-ring.ts'
import { passkeySignature } from '../accounts/owner-signature.ts'
import type { SafeOwners } from '../accounts/safe-owners.ts'
import {
  buildSignable,
  hashOperation,
  type OperationPlan,
  packOperation,
  toNonce,
  toSafeCall,
} from '../accounts/user-operation.ts'
import { buildSalt, type Wallets } from '../accounts/wallets.ts'
import type { NodeClient } from '../rpc/client.ts'
import type { AccountContracts } from '../rpc/networks.ts'
import type { Bundled, Bundler } from './bundler.ts'
import {
  type Execution,
  executionIn,
  findExecution,
  isExecuted,
  type LogSearch,
  type OperationKey,
} from './executions.ts'
import type { ReadReceipt } from './read-receipt.ts'
import { findReceipt, generatePauses } from './receipts.ts'
import { findCause, findRefusal, isSignatureError } from './refusal.ts'
import { findSwapRefusal } from './swaps.ts'

/** Dependencies of operations. @property prepare prepares a wallet for its next operation. */
export interface OperationOptions {
  readonly client: NodeClient
  readonly bundler: Bundler
  readonly wallets: Wallets
  readonly contracts: AccountContracts
  readonly tokens: TokenAddresses
  readonly keys: KeyRing
  readonly owners: SafeOwners
  readonly logSearch: LogSearch | undefined
  readonly read: (receipt: TransactionReceipt) => ReadReceipt
  prepare(operation: AuthorizedOperation): Promise<void>
}

/** Port methods for operations. */
export interface Operations {
  buildOperation(operation: ChainOperation): SignableOperation
  signAs(address: Address, operation: ChainOperation): Promise<Hex>
  submit(operation: AuthorizedOperation): Promise<Submission>
  hashOperation(operation: AuthorizedOperation): Hex
  /** Drops cached broadcasts. */
  forget(): void
  awaitExecution(operation: AuthorizedOperation, waitMs: number): Promise<OperationExecution>
}

/** A transaction that carried an operation, with its execution if known. */
interface Broadcast {
  readonly hash: Hex
  readonly execution: Execution | undefined
}

/** How long operations of a Safe wait for a change of its owner. */
const CHANGE_WAIT_MS = 15_000

/** Number of cached broadcasts; older ones are found by their event. */
const MAX_CACHED = 20_000

export function createOperations(options: OperationOptions): Operations {
  const { client, bundler, wallets, contracts, tokens, keys, owners, logSearch, read, prepare } = options
  const broadcast = new Map<string, Broadcast>()
  const running = new Map<string, Promise<Submission>>()
  // The first owner, which it is computed from, is known only once the database is open.
  const findDelegate = () => wallets.findSafe(wallets.delegate).address
  const signed = { ...contracts, chainId: client.chain.id }

  function buildPlan(
    { wallet, id, call, validUntil }: ChainOperation,
    signedBy: AuthorizedOperation['authorization']['kind'],
  ): OperationPlan {
    const safe = wallets.findSafe(wallet).address
    const signer = signedBy === 'passkey' ? 'passkey' : 'key'
    return {
      safe,
      id,
      validUntil,
      signer,
      call: toSafeCall({ contracts, tokens, delegate: findDelegate(), safe }, call),
    }
  }

  /**
   * Builds the executed plan: by the wallet itself, or by the gateway's Safe through the allowance module. It depends
   * only on the authorization, because the wallet may have a new owner by now.
   */
  function buildExecutedPlan(operation: AuthorizedOperation): OperationPlan {
    const { authorization, wallet, call } = operation
    const plan = buildPlan(operation, authorization.kind)
    if (authorization.kind !== 'allowance') return plan
    const transfer = buildAllowanceCall({ contracts, tokens }, { safe: plan.safe, ...authorization, call })
    return {
      ...plan,
      safe: findDelegate(),
      signer: 'key',
      call: transfer,
      id: `${wallet.accountId}|${plan.id}`,
    }
  }

  const toKey = ({ safe, id }: OperationPlan): OperationKey => ({
    entryPoint: contracts.entryPoint,
    sender: safe,
    nonce: toNonce(id),
  })

  async function buildSignature(
    operation: AuthorizedOperation,
    plan: OperationPlan,
  ): Promise<Hex | undefined> {
    const { authorization, wallet } = operation
    const { hash } = buildSignable(signed, plan)
    if (authorization.kind === 'eoa') return authorization.signature
    if (authorization.kind === 'passkey')
      return passkeySignature(wallets.findSigner(wallet.owner).address, hash, authorization)
    return (await owners.findKey(plan.safe)).sign?.({ hash })
  }

  /** Signs with a key of the gateway, whoever owns the Safe now. */
  async function signAs(address: Address, operation: ChainOperation): Promise<Hex> {
    const { hash } = buildSignable(signed, buildPlan(operation, 'gateway'))
    const signature = await keys.find(address)?.sign?.({ hash })
    if (signature === undefined) throw new Error(`This gateway cannot sign with the key ${address}.`)
    return signature
  }

  function submit(operation: AuthorizedOperation): Promise<Submission> {
    const name = nameOperation(operation)
    const first = running.get(name)
    if (first !== undefined) return first
    const submission = submitOnce(operation)
      .catch((error: unknown) => {
        // The relayer throws its own error when a broadcast is uncertain; an error of the node means that nothing was
        // broadcast.
        throw error instanceof BaseError ? unavailable('The chain accepted no transaction.', error) : error
      })
      .finally(() => running.delete(name))
    running.set(name, submission)
    if (operation.call.kind === 'owner')
      owners.hold(
        wallets.findSafe(operation.wallet).address,
        submission.then(() => awaitExecution(operation, CHANGE_WAIT_MS)),
      )
    return submission
  }

  async function submitOnce(operation: AuthorizedOperation): Promise<Submission> {
    const known = broadcast.get(nameOperation(operation))
    if (known !== undefined) {
      const execution = await awaitExecution(operation, 0)
      if (execution.status !== 'absent')
        return { status: 'submitted', transactionHash: findHash(execution) ?? known.hash }
    }
    await prepare(operation)
    const plan = buildExecutedPlan(operation)
    const signature = await buildSignature(operation, plan)
    if (signature === undefined)
      return {
        status: 'refused',
        reason: 'the signature has an unsupported form',
        cause: 'authorization',
      }
    const { call, wallet } = operation
    const callRefusal =
      call.kind === 'swap'
        ? await findSwapRefusal(
            { client, contracts, tokens },
            { plan, call, wallet: wallets.findSafe(wallet).address },
          )
        : await findCallRefusal(plan)
    if (callRefusal !== undefined) return resolveRefusal(operation, plan, callRefusal)
    const bundled = await sendSigned(operation, plan, signature)
    if (bundled.status === 'refused') return resolveRefusal(operation, plan, bundled.reason)
    remember(nameOperation(operation), bundled)
    return { status: 'submitted', transactionHash: bundled.hash }
  }

  /** Sends an operation; once more if the gateway's key of the Safe was replaced just before. */
  async function sendSigned(
    operation: AuthorizedOperation,
    plan: OperationPlan,
    signature: Hex,
  ): Promise<Bundled> {
    const { kind } = operation.authorization
    const bundled = await bundler.send(packOperation(plan, signature))
    const isOurs = kind === 'gateway' || kind === 'allowance'
    if (!isOurs || bundled.status === 'sent' || !isSignatureError(bundled.reason)) return bundled
    owners.doubt(plan.safe)
    const again = await buildSignature(operation, plan)
    return again === undefined || again === signature ? bundled : bundler.send(packOperation(plan, again))
  }

  /** Checked after the simulation, which also fails if this operation was executed just before. */
  async function resolveRefusal(
    { id }: AuthorizedOperation,
    plan: OperationPlan,
    reason: string,
  ): Promise<Submission> {
    const executed = await findExecuted(toKey(plan))
    if (executed === 'pending') throw new Error(`Operation ${id} is pending from an earlier submission.`)
    if (executed !== undefined) return { status: 'submitted', transactionHash: executed.transaction.hash }
    return { status: 'refused', reason, cause: findCause(reason) }
  }

  /** Simulates the Safe's own call, which the EntryPoint's simulation does not report. */
  async function findCallRefusal({ safe, call }: OperationPlan): Promise<string | undefined> {
    if (call.byDelegate) return undefined
    try {
      const { data } = await client.call({ account: safe, to: call.to, data: call.data })
      // Nearly every token returns data; without data the contract may be missing, and a call to an address without
      // code succeeds.
      if (data === undefined && !(await client.getCode({ address: call.to })))
        throw unavailable(`There is no contract at ${call.to} on this chain.`)
      return undefined
    } catch (error) {
      const refusal = findRefusal(error)
      if (refusal === undefined) throw error
      return refusal
    }
  }

  async function findExecuted(key: OperationKey): Promise<Execution | 'pending' | undefined> {
    if (await isExecuted(client, key, 'latest'))
      return findExecution(client, key, { search: logSearch, read })
    return (await isExecuted(client, key, 'pending')) ? 'pending' : undefined
  }

  async function awaitExecution(operation: AuthorizedOperation, waitMs: number): Promise<OperationExecution> {
    const key = toKey(buildExecutedPlan(operation))
    const deadline = timers.deadline(waitMs)
    for (const pauseMs of generatePauses(client)) {
      const execution = await executionNow(nameOperation(operation), key)
      if (execution.status !== 'pending' || deadline.aborted) return execution
      await timers.sleep(pauseMs)
    }
    return { status: 'pending' }
  }

  async function executionNow(name: string, key: OperationKey): Promise<OperationExecution> {
    const made = broadcast.get(name)
    const receipt = made && !made.execution ? await findReceipt(client, made.hash) : undefined
    if (made && !made.execution && !receipt && (await isPending(made.hash))) return { status: 'pending' }
    const known = made?.execution ?? (receipt && executionIn(read(receipt), key))
    const execution = known ?? (await findExecuted(key))
    if (execution === 'pending') return { status: 'pending' }
    if (execution === undefined) {
      broadcast.delete(name)
      return { status: 'absent' }
    }
    return { status: 'executed', ...execution }
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

  function remember(name: string, made: Broadcast): void {
    broadcast.set(name, made)
    for (const oldest of broadcast.keys()) {
      if (broadcast.size <= MAX_CACHED) return
      broadcast.delete(oldest)
    }
  }

  return {
    buildOperation: (operation) => buildSignable(signed, buildPlan(operation, operation.wallet.owner.kind)),
    hashOperation: (operation) => hashOperation(signed, buildExecutedPlan(operation)),
    signAs,
    submit,
    awaitExecution,
    forget: () => broadcast.clear(),
  }
}

/** The changes of owners have one id for all Safes. */
function nameOperation({ wallet, id }: AuthorizedOperation): string {
  return `${buildSalt(wallet)} ${id}`
}

function findHash(execution: OperationExecution): Hex | undefined {
  return execution.status === 'executed' ? execution.transaction.hash : undefined
}

function unavailable(detail: string, cause?: unknown): Failure {
  return new Failure('provider_unavailable', detail, { retryAfter: 2 }, { cause })
}
