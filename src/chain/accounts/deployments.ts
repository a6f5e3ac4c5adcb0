/** Prepares wallets at the sponsor's expense: deploys them and hands them over to their owners. */
import { encodeFunctionData } from 'viem'
import { randomToken } from '../../core/base/ids.ts'
import { Failure } from '../../core/failures/failure.ts'
import {
  type Address,
  type AuthorizedOperation,
  type Hex,
  type SignedSwap,
  SWAP_VALID_UNTIL,
  swapId,
  type Wallet,
} from '../../providers/chain/port.ts'
import { multicallAbi, safeAbi } from '../contracts/abi.ts'
import type { Bundler } from '../relay/bundler.ts'
import { awaitReceipt } from '../relay/receipts.ts'
import type { Relayer } from '../relay/relayer.ts'
import { type NodeClient, requireChainName } from '../rpc/client.ts'
import { type AccountContracts, commonDeployer, lowerCaseAddress, multicallAddress } from '../rpc/networks.ts'
import type { KeyRing } from './key-ring.ts'
import { missingKey, readSafeState, type SafeOwners } from './safe-owners.ts'
import {
  buildSignable,
  handleOpsCall,
  type OperationPlan,
  type PackedOperation,
  packOperation,
} from './user-operation.ts'
import { buildSalt, swapOwnerCall, type Wallets } from './wallets.ts'

/** Gas for creating a Safe with its setup: three modules' storage, five prices, an allowance. */
const CREATION_GAS = 1_500_000n
const SIGNER_GAS = 1_500_000n

/** Time limit for mining a deployment. */
const MINING_TIMEOUT_MS = 20_000

export interface DeploymentOptions {
  readonly client: NodeClient
  readonly relayer: Relayer
  readonly bundler: Bundler
  readonly wallets: Wallets
  readonly contracts: AccountContracts
  readonly keys: KeyRing
  readonly owners: SafeOwners
}

/** Cache of deployed wallets. */
export interface Deployments {
  isDeployed(address: Address): Promise<boolean>
  /** Prepares the Safes an operation needs. Concurrent calls, also from several processes, are safe. */
  prepare(operation: AuthorizedOperation): Promise<void>
  /** Drops the cache. */
  forget(): void
}

/** Creates the deployments of a node that is set up. */
export function createDeployments(options: DeploymentOptions): Deployments {
  const { client, relayer, bundler, wallets, contracts, keys, owners } = options
  const signed = { ...contracts, chainId: client.chain.id }
  const deployed = new Set<Address>()
  const ready = new Map<string, Promise<void>>()

  async function isDeployed(address: Address): Promise<boolean> {
    if (deployed.has(address)) return true
    if (!(await client.getCode({ address }))) return false
    deployed.add(address)
    return true
  }

  async function deploy(address: Address, call: { to: Address; data: Hex; gas: bigint }): Promise<void> {
    if (await isDeployed(address)) return
    const { hash, receipt } = await relayer.send(call)
    // Another gateway may be first, so the code at the address counts, not the success of this transaction.
    if (receipt === undefined) await awaitReceipt(client, hash, MINING_TIMEOUT_MS)
    if (!(await isDeployed(address))) throw new Error(`No contract could be deployed at ${address}.`)
  }

  async function deployWallet(wallet: Wallet, validUntil: Date): Promise<void> {
    const signers = [wallet.origin, wallet.owner].flatMap((owner) => {
      const { address, contract } = wallets.findSigner(owner)
      return contract === undefined
        ? []
        : [deploy(address, { to: commonDeployer, data: contract.data, gas: SIGNER_GAS })]
    })
    await Promise.all([...signers, deploySafe(wallet)])
    if (wallet.origin.kind === 'gateway' && wallet.owner.kind !== 'gateway')
      await handOver(wallet, validUntil)
  }

  /** Deploys a Safe that begins with a former key together with the change to the key of now. */
  async function deploySafe(wallet: Wallet): Promise<void> {
    const safe = wallets.findSafe(wallet)
    const creation = { to: contracts.proxyFactory, data: safe.creation, gas: CREATION_GAS }
    const first = wallets.findFirstOwner(wallet)
    if (first === undefined || !keys.isRotated) return deploy(safe.address, creation)
    if (!(await isDeployed(safe.address))) {
      const swaps = await findSwaps(safe.address, first)
      await deploy(safe.address, swaps.length === 0 ? creation : withSwaps(creation, swaps))
    }
    await requireKey(wallet)
  }

  /**
   * Finds the changes of the owner that lead from a former key to one of this gateway, the present one if there is a way.
   * @throws Failure `provider_unavailable` when there is none.
   */
  async function findSwaps(safe: Address, from: Address): Promise<readonly PackedOperation[]> {
    if (isSame(from, keys.current.address)) return []
    const kept = await keys.findSwaps(requireChainName(client), safe)
    const swaps: PackedOperation[] = []
    let owner = from
    for (let next = findNext(owner); next !== undefined; next = findNext(owner)) {
      swaps.push(packOperation(planSwap(safe, next), next.signature))
      owner = next.to
    }
    function findNext(at: Address): SignedSwap | undefined {
      if (swaps.length > kept.length || isSame(at, keys.current.address)) return undefined
      const next = kept.filter((swap) => isSame(swap.from, at))
      return next.find((swap) => isSame(swap.to, keys.current.address)) ?? next[0]
    }
    const key = keys.find(owner)
    if (key === undefined) throw missingKey(client.chain.name, safe, owner)
    if (key === keys.current || !keys.isReplacing) return swaps
    const change = { from: owner, to: keys.current.address }
    const plan = planSwap(safe, { id: swapId(change), ...change })
    const signature = await key.sign?.({ hash: buildSignable(signed, plan).hash })
    if (signature === undefined) throw new Error('The key of the gateway cannot sign a hash.')
    return [...swaps, packOperation(plan, signature)]
  }

  /** One transaction that deploys a Safe and changes its owner. Each change is validated after the one before was executed. */
  function withSwaps(creation: { to: Address; data: Hex; gas: bigint }, swaps: readonly PackedOperation[]) {
    const calls = [
      creation,
      ...swaps.map((swap) => handleOpsCall(contracts.entryPoint, relayer.address, [swap])),
    ]
    // Anybody may deploy the Safe first, and another gateway may change its owner: what the chain shows afterwards counts.
    const args = [calls.map(({ to, data }) => ({ target: to, allowFailure: true, callData: data }))] as const
    return {
      to: multicallAddress,
      data: encodeFunctionData({ abi: multicallAbi, functionName: 'aggregate3', args }),
      gas: calls.reduce((sum, { gas }) => sum + gas, 0n),
    }
  }

  /**
   * Requires that a key of this gateway owns a deployed Safe. One that was left with a former key changes to the present one by the
   * changes that were kept.
   */
  async function requireKey(wallet: Wallet): Promise<void> {
    const { address: safe } = wallets.findSafe(wallet)
    const owner = await owners.readOwner(safe)
    // It was handed over, or it is lost: its operations are rejected by the chain.
    if (owner === undefined || keys.find(owner) !== undefined) return
    for (const swap of await findSwaps(safe, owner)) {
      const bundled = await bundler.send(swap)
      if (bundled.status === 'sent') await awaitReceipt(client, bundled.hash, MINING_TIMEOUT_MS)
    }
    const now = await owners.readOwner(safe)
    if (now === undefined || keys.find(now) === undefined) throw missingKey(client.chain.name, safe, now)
  }

  /** Transfers a gateway-owned Safe to its new owner; afterwards the gateway cannot move its money alone. */
  async function handOver(wallet: Wallet, validUntil: Date): Promise<void> {
    const { address: safe } = wallets.findSafe(wallet)
    const { address: owner } = wallets.findSigner(wallet.owner)
    const isOwner = () =>
      client.readContract({ address: safe, abi: safeAbi, functionName: 'isOwner', args: [owner] })
    if (await isOwner()) return requireGiven(wallet)
    const key = await owners.findKey(safe)
    await requireAlone(wallet)
    const plan = {
      safe,
      id: `hand-over ${randomToken(16)}`,
      call: { to: contracts.walletSetup, data: wallets.handOver(wallet, key.address), byDelegate: true },
      validUntil,
      signer: 'key',
    } as const
    const signature = await key.sign?.({ hash: buildSignable(signed, plan).hash })
    if (signature === undefined) throw new Error('The key of the gateway cannot sign a hash.')
    const bundled = await bundler.send(packOperation(plan, signature))
    // Its key was replaced just now: the next attempt asks the chain which one it has.
    if (bundled.status === 'refused') owners.doubt(safe)
    if (bundled.status === 'sent') await awaitReceipt(client, bundled.hash, MINING_TIMEOUT_MS)
    if (!(await isOwner())) throw new Error(`The wallet ${safe} could not be transferred to its new owner.`)
    await requireGiven(wallet)
  }

  /**
   * Requires that no key of the gateway is left beside the new owner: whoever has the key can add the person before the hand-over, which
   * then would be taken for done.
   * @throws Failure `provider_unavailable`.
   */
  async function requireGiven(wallet: Wallet): Promise<void> {
    if ((await owners.readOwner(wallets.findSafe(wallet).address)) !== undefined) throw notAlone(wallet)
  }

  /**
   * Requires that nobody else can act for a Safe that is handed over: its new owner would not get rid of them.
   * @throws Failure `provider_unavailable`.
   */
  async function requireAlone(wallet: Wallet): Promise<void> {
    const state = await readSafeState({ client, contracts, keys, wallets }, wallet, 'latest')
    if (state?.owners.length === 1 && !state.hasOtherModules) return
    throw notAlone(wallet)
  }

  function notAlone(wallet: Wallet): Failure {
    return new Failure(
      'provider_unavailable',
      `The smart account ${wallets.findSafe(wallet).address} on ${client.chain.name} has an owner or a module that it should not have, so that it was not handed over.`,
      { retryAfter: 60, hint: 'The operator reads "If it leaked" in docs/keys.md.' },
    )
  }

  function prepareWallet(wallet: Wallet, validUntil: Date): Promise<void> {
    const key = JSON.stringify([buildSalt(wallet), wallet.origin, wallet.owner])
    const known = ready.get(key)
    if (known !== undefined) return known
    const made = deployWallet(wallet, validUntil)
    ready.set(key, made)
    made.catch(() => ready.delete(key))
    return made
  }

  return {
    isDeployed,
    forget() {
      deployed.clear()
      ready.clear()
    },
    async prepare({ wallet, authorization, call, validUntil }) {
      if (call.kind === 'owner') {
        const { address, creation: data } = wallets.findSafe(wallet)
        return deploy(address, { to: contracts.proxyFactory, data, gas: CREATION_GAS })
      }
      const needed = authorization.kind === 'allowance' ? [wallet, wallets.delegate] : [wallet]
      await Promise.all(needed.map((each) => prepareWallet(each, validUntil)))
    },
  }
}

function planSwap(safe: Address, { id, from, to }: Pick<SignedSwap, 'id' | 'from' | 'to'>): OperationPlan {
  return {
    safe,
    id,
    call: { to: safe, data: swapOwnerCall(from, to) },
    validUntil: SWAP_VALID_UNTIL,
    signer: 'key',
  }
}

function isSame(one: Address, other: Address): boolean {
  return lowerCaseAddress(one) === lowerCaseAddress(other)
}
