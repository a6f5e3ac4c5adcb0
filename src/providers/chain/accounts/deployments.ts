/** Makes wallets ready: deployed, and in the hands of the owner that they should have. At the sponsor's expense. */
import type { LocalAccount } from 'viem/accounts'
import { randomToken } from '../../../base/ids.ts'
import type { Address, AuthorizedOperation, Hex, Wallet } from '../../chain.ts'
import { safeAbi } from '../contracts/abi.ts'
import type { Bundler } from '../relay/bundler.ts'
import { awaitReceipt } from '../relay/receipts.ts'
import type { Relayer } from '../relay/relayer.ts'
import type { NodeClient } from '../rpc/client.ts'
import { type AccountContracts, commonDeployer } from '../rpc/networks.ts'
import { packOperation, signableOf } from './user-operation.ts'
import type { Wallets } from './wallets.ts'

/** Creating a Safe with its setup: three modules' storage, five prices, an allowance. */
const CREATION_GAS = 1_500_000n
const SIGNER_GAS = 1_500_000n

/** How long a deployment may take to be mined. */
const MINING_TIMEOUT_MS = 20_000

/** What is deployed with. */
export interface DeploymentOptions {
  readonly client: NodeClient
  readonly relayer: Relayer
  readonly bundler: Bundler
  readonly wallets: Wallets
  readonly contracts: AccountContracts
  readonly gatewayOwner: LocalAccount
}

/** Deployed wallets, remembered. */
export interface Deployments {
  isDeployed(address: Address): Promise<boolean>
  /** Makes ready whatever Safe an operation needs. Safe to call at any time, by several processes at once. */
  prepare(operation: AuthorizedOperation): Promise<void>
  /** Drops what is remembered of wallets. */
  forget(): void
}

/** Deployments on a node that is set up. */
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
    // Another gateway may be first: what counts is not this transaction's success but the code that stands there.
    if (receipt === undefined) await awaitReceipt(client, hash, MINING_TIMEOUT_MS)
    if (!(await isDeployed(address))) throw new Error(`No contract could be deployed at ${address}.`)
  }

  async function deployWallet(wallet: Wallet, validUntil: Date): Promise<void> {
    const safe = wallets.safeOf(wallet)
    const signers = [wallet.origin, wallet.owner].flatMap((owner) => {
      const { address, contract } = wallets.signerOf(owner)
      return contract === undefined
        ? []
        : [deploy(address, { to: commonDeployer, data: contract.data, gas: SIGNER_GAS })]
    })
    const creation = { to: contracts.proxyFactory, data: safe.creation, gas: CREATION_GAS }
    await Promise.all([...signers, deploy(safe.address, creation)])
    if (wallet.origin.kind === 'gateway' && wallet.owner.kind !== 'gateway')
      await handOver(wallet, validUntil)
  }

  /** Gives a Safe of the gateway's to its new owner; from then on the gateway cannot move its money alone. */
  async function handOver(wallet: Wallet, validUntil: Date): Promise<void> {
    const { address: safe } = wallets.safeOf(wallet)
    const { address: owner } = wallets.signerOf(wallet.owner)
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
    const signature = await gatewayOwner.sign?.({ hash: signableOf(contracts, plan).hash })
    if (signature === undefined) throw new Error('The key of the gateway cannot sign a hash.')
    const bundled = await bundler.send(packOperation(plan, signature))
    if (bundled.status === 'sent') await awaitReceipt(client, bundled.hash, MINING_TIMEOUT_MS)
    if (!(await isOwner())) throw new Error(`The wallet ${safe} could not be given to its new owner.`)
  }

  function prepareWallet(wallet: Wallet, validUntil: Date): Promise<void> {
    const key = JSON.stringify([wallet.accountId, wallet.origin, wallet.owner])
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
