/** One connection to one node that is set up: everything that is remembered of it ends with it. */
import type { LocalAccount } from 'viem/accounts'
import type { EvmSigner } from '../chain.ts'
import type { NodeClient } from './client.ts'
import { createEvmSigner } from './evm-signer.ts'
import type { LogSearch } from './executions.ts'
import type { AccountContracts, TokenAddresses } from './networks.ts'
import type { Relayer } from './relayer.ts'
import { createSafeOf, type SafeOf } from './safe.ts'
import { createTransfers, type Transfers } from './transfers.ts'

/** What a session is made from. */
export interface SessionOptions {
  readonly client: NodeClient
  readonly contracts: AccountContracts
  readonly tokens: TokenAddresses
  readonly relayer: Relayer
  /** Signs for every Safe. */
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
  readonly safeOf: SafeOf
  readonly transfers: Transfers
  readonly signer: EvmSigner
}

/** Opens a session on a node that is set up. */
export async function openSession(options: SessionOptions): Promise<EvmSession> {
  const { client, contracts, tokens, relayer, owner, isDevelopment, logSearch } = options
  const safeOf = await createSafeOf(client, contracts, owner.address)
  const maker = { contracts, tokens, owner, beneficiary: relayer.address }
  const transfers = createTransfers({ client, relayer, safeOf, maker, logSearch })
  return {
    client,
    contracts,
    relayer,
    isDevelopment,
    safeOf,
    transfers,
    signer: createEvmSigner(client, relayer),
  }
}
