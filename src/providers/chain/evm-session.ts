/** One connection to one node that is set up: everything that is remembered of it ends with it. */
import type { LocalAccount } from 'viem/accounts'
import type { EvmSigner } from '../chain.ts'
import { safeAbi } from './abi.ts'
import { createBundler } from './bundler.ts'
import type { NodeClient } from './client.ts'
import { createDeployments, type Deployments } from './deployments.ts'
import { createEvmSigner } from './evm-signer.ts'
import type { LogSearch } from './executions.ts'
import type { AccountContracts, TokenAddresses } from './networks.ts'
import { createOperations, type Operations } from './operations.ts'
import type { Relayer } from './relayer.ts'
import { createWallets, DEVELOPMENT_STARTER_MICROS, type Wallets } from './wallets.ts'

/** Bundles on their way at once. A development node executes one at a time; two keep it busy. */
const BUNDLES = { development: 2, public: 8 } as const

/** What a session is made from. */
export interface SessionOptions {
  readonly client: NodeClient
  readonly contracts: AccountContracts
  readonly tokens: TokenAddresses
  readonly relayer: Relayer
  /** The gateway's key: signs for every Safe that nobody else owns. */
  readonly owner: LocalAccount
  readonly isDevelopment: boolean
  readonly logSearch: LogSearch | undefined
}

/** A live session. */
export interface EvmSession {
  readonly client: NodeClient
  readonly contracts: AccountContracts
  readonly relayer: Relayer
  readonly isDevelopment: boolean
  readonly logSearch: LogSearch | undefined
  readonly wallets: Wallets
  readonly deployments: Deployments
  readonly operations: Operations
  readonly signer: EvmSigner
}

/** Opens a session on a node that is set up. */
export async function openSession(options: SessionOptions): Promise<EvmSession> {
  const { client, contracts, tokens, relayer, owner: gatewayOwner, isDevelopment, logSearch } = options
  // The one thing of an address that depends on the factory.
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
    gatewayOwner: gatewayOwner.address,
    starterMicros,
  })
  const { entryPoint } = contracts
  const bundler = createBundler({ client, relayer, entryPoint }, BUNDLES[kind])
  const deployments = createDeployments({ client, relayer, bundler, wallets, contracts, gatewayOwner })
  const { prepare } = deployments
  return {
    client,
    contracts,
    relayer,
    isDevelopment,
    logSearch,
    wallets,
    deployments,
    operations: createOperations({
      client,
      bundler,
      wallets,
      contracts,
      tokens,
      gatewayOwner,
      logSearch,
      prepare,
    }),
    signer: createEvmSigner(client, relayer),
  }
}
