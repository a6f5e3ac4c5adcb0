/** A session on one node that is set up; all caches end with it. */
import type { TransactionReceipt } from 'viem'
import { cctpOn } from '../../providers/cctp.ts'
import type { ContractSupport, EvmSigner, Hex, TokenAddresses } from '../../providers/chain/port.ts'
import { createDeployments, type Deployments } from '../accounts/deployments.ts'
import type { KeyRing } from '../accounts/key-ring.ts'
import { createSafeOwners } from '../accounts/safe-owners.ts'
import {
  createWallets,
  DEVELOPMENT_CARDS_MICROS,
  DEVELOPMENT_STARTER_MICROS,
  type Wallets,
} from '../accounts/wallets.ts'
import { safeAbi } from '../contracts/abi.ts'
import { createEvmSigner } from '../evm-signer.ts'
import { createBundler } from '../relay/bundler.ts'
import { readContractSupport, type Scheme } from '../relay/contract-support.ts'
import type { LogSearch } from '../relay/executions.ts'
import { createOperations, type Operations } from '../relay/operations.ts'
import { type ReadReceipt, readReceipt } from '../relay/read-receipt.ts'
import type { Relayer } from '../relay/relayer.ts'
import { type NodeClient, requireChainName } from '../rpc/client.ts'
import { type AccountContracts, lowerCaseAddress } from '../rpc/networks.ts'
import { createSeenBlocks, type SeenBlocks } from './seen-blocks.ts'

/** Maximum pending bundles. A development node executes one at a time; two keep it busy. */
const BUNDLES = { development: 2, public: 8 } as const

export interface SessionOptions {
  readonly client: NodeClient
  readonly contracts: AccountContracts
  readonly tokens: TokenAddresses
  readonly relayer: Relayer
  /** The gateway's keys, which sign for every Safe without another owner. */
  readonly keys: KeyRing
  readonly isDevelopment: boolean
  readonly logSearch: LogSearch | undefined
  /** keccak256 of the code that the contracts of x402 may have. */
  readonly x402Hashes: ReadonlySet<Hex>
}

export interface EvmSession {
  readonly client: NodeClient
  readonly contracts: AccountContracts
  readonly relayer: Relayer
  readonly isDevelopment: boolean
  readonly logSearch: LogSearch | undefined
  readonly wallets: Wallets
  readonly deployments: Deployments
  readonly keys: KeyRing
  readonly operations: Operations
  readonly signer: EvmSigner
  /** Blocks that evidence was read from. */
  readonly seenBlocks: SeenBlocks
  /** Parses a receipt and records its block. */
  readonly readReceipt: (receipt: TransactionReceipt) => ReadReceipt
  /** Tells whether payments by a scheme can be made; once they can, its contracts are not read again. */
  readonly readSupport: (scheme: Scheme) => Promise<ContractSupport>
  /** Drops cached transactions, contracts and nonces of the sponsor. */
  forget(): void
}

/** Opens a session on a node that is set up. */
export async function openSession(options: SessionOptions): Promise<EvmSession> {
  const { client, contracts, tokens, relayer, keys, isDevelopment, logSearch, x402Hashes } = options
  const supported = new Set<Scheme>()
  // The only part of an address that depends on the factory.
  const proxyCode = await client.readContract({
    address: contracts.proxyFactory,
    abi: safeAbi,
    functionName: 'proxyCreationCode',
  })
  const kind = isDevelopment ? 'development' : 'public'
  const starterMicros = isDevelopment ? DEVELOPMENT_STARTER_MICROS : 0n
  const wallets = createWallets({
    contracts,
    tokens,
    proxyCode,
    firstOwner: () => keys.first,
    starterMicros,
    // No allowance with real value before the owner has signed one.
    cardsMicros: isDevelopment ? DEVELOPMENT_CARDS_MICROS : 0n,
  })
  const { entryPoint } = contracts
  const transmitter = lowerCaseAddress(cctpOn(requireChainName(client)).transmitter)
  const seenBlocks = createSeenBlocks(client)
  const read = (receipt: TransactionReceipt) => {
    seenBlocks.note(receipt)
    return readReceipt(receipt, entryPoint, transmitter)
  }
  const bundler = createBundler({ client, relayer, entryPoint, read }, BUNDLES[kind])
  const owners = createSafeOwners({ client, keys })
  const deployments = createDeployments({ client, relayer, bundler, wallets, contracts, keys, owners })
  const { prepare } = deployments
  const operations = createOperations({
    client,
    bundler,
    wallets,
    contracts,
    tokens,
    keys,
    owners,
    logSearch,
    read,
    prepare,
  })
  return {
    client,
    contracts,
    relayer,
    isDevelopment,
    logSearch,
    wallets,
    deployments,
    keys,
    operations,
    seenBlocks,
    readReceipt: read,
    signer: createEvmSigner(client, relayer, isDevelopment ? 'pending' : 'latest'),
    async readSupport(scheme) {
      if (supported.has(scheme)) return 'supported'
      const support = await readContractSupport(client, scheme, x402Hashes)
      if (support === 'supported') supported.add(scheme)
      return support
    },
    forget() {
      deployments.forget()
      owners.forget()
      operations.forget()
      relayer.forget()
    },
  }
}
