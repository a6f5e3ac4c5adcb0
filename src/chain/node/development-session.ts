/** Sessions on development nodes, which are set up as needed and have an inexhaustible sponsor. */
import type { Hex } from '../../providers/chain/port.ts'
import { createKeyRing } from '../accounts/key-ring.ts'
import { sandboxOwner } from '../keys.ts'
import { createLanes } from '../relay/lanes.ts'
import type { NodeClient } from '../rpc/client.ts'
import { mapAddresses, type SandboxTokens } from '../rpc/networks.ts'
import { deployMissing, developmentContracts, standInHashes } from './deploy.ts'
import { type EvmSession, openSession } from './evm-session.ts'

/**
 * Sets up the node and opens a session. @param seed seed of the sponsor's keys. @param tokens to deploy.
 * @param isPrepared true: the node began with all contracts.
 */
export async function openDevelopmentSession(
  client: NodeClient,
  seed: Hex,
  tokens: SandboxTokens,
  isPrepared = false,
): Promise<EvmSession> {
  const addresses = mapAddresses(tokens)
  const relayer = createLanes(client, seed, Object.values(addresses))
  return openSession({
    client,
    contracts: isPrepared ? developmentContracts() : await deployMissing(client, relayer, tokens),
    tokens: addresses,
    relayer,
    keys: createKeyRing(sandboxOwner()),
    isDevelopment: true,
    logSearch: undefined,
    x402Hashes: standInHashes,
  })
}
