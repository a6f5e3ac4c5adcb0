/** Prepares wallets at the sponsor's expense: deploys them and hands them over to their owners. */
import type { LocalAccount } from 'viem/accounts'
import { randomToken } from '../../core/base/ids.ts'
import type { Address, AuthorizedOperation, Hex, Wallet } from '../../providers/chain/port.ts'
import { safeAbi } from '../contracts/abi.ts'
import type { Bundler } from '../relay/bundler.ts'
import { awaitReceipt } from '../relay/receipts.ts'
import type { Relayer } from '../relay/relayer.ts'
import type { NodeClient } from '../rpc/client.ts'
import { type AccountContracts, commonDeployer } from '../rpc/networks.ts'
import { buildSignable, packOperation } from './user-operation.ts'
import { buildSalt, type Wallets } from './wallets.ts'

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
  readonly gatewayOwner: LocalAccount
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
  const { client, relayer, bundler, wallets, contracts, gatewayOwner } = options
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
    const safe = wallets.findSafe(wallet)
    const signers = [wallet.origin, wallet.owner].flatMap((owner) => {
      const { address, contract } = wallets.findSigner(owner)
      return contract === undefined
        ? []
        : [deploy(address, { to: commonDeployer, data: contract.data, gas: SIGNER_GAS })]
    })
    const creation = { to: contracts.proxyFactory, data: safe.creation, gas: CREATION_GAS }
    await Promise.all([...signers, deploy(safe.address, creation)])
    if (wallet.origin.kind === 'gateway' && wallet.owner.kind !== 'gateway')
      await handOver(wallet, validUntil)
  }

  /** Transfers a gateway-owned Safe to its new owner; afterwards the gateway cannot move its money alone. */
  async function handOver(wallet: Wallet, validUntil: Date): Promise<void> {
    const { address: safe } = wallets.findSafe(wallet)
    const { address: owner } = wallets.findSigner(wallet.owner)
    const isOwner = () =>
      client.readContract({ address: safe, abi: safeAbi, functionName: 'isOwner', args: [owner] })
    if (await isOwner()) return
    const plan = {
      safe,
      id: `hand-over ${randomToken(16)}`,
      call: { to: contracts.walletSetup, data: wallets.handOver(wallet), byDelegate: true },
      validUntil,
      signer: 'key',
    } as const
    const signature = await gatewayOwner.sign?.({
      hash: buildSignable({ ...contracts, chainId: client.chain.id }, plan).hash,
    })
    if (signature === undefined) throw new Error('The key of the gateway cannot sign a hash.')
    const bundled = await bundler.send(packOperation(plan, signature))
    if (bundled.status === 'sent') await awaitReceipt(client, bundled.hash, MINING_TIMEOUT_MS)
    if (!(await isOwner())) throw new Error(`The wallet ${safe} could not be transferred to its new owner.`)
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
    async prepare({ wallet, authorization, validUntil }) {
      const needed = authorization.kind === 'allowance' ? [wallet, wallets.delegate] : [wallet]
      await Promise.all(needed.map((each) => prepareWallet(each, validUntil)))
    },
  }
}
