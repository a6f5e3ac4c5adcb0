/** Sessions on development nodes, which are set up as needed and have an inexhaustible sponsor. */
import type { Hex } from '../../chain.ts'
import { sandboxOwner } from '../keys.ts'
import { createLanes } from '../relay/lanes.ts'
import type { NodeClient } from '../rpc/client.ts'
import { sandboxTokenAddresses } from '../rpc/networks.ts'
import { deployMissing } from './deploy.ts'
import { type EvmSession, openSession } from './evm-session.ts'

/** Sets up the node and opens a session. @param seed seed of the sponsor's keys. */
export async function openDevelopmentSession(client: NodeClient, seed: Hex): Promise<EvmSession> {
  const relayer = createLanes(client, seed)
  return openSession({
    client,
    contracts: await deployMissing(client, relayer),
    tokens: sandboxTokenAddresses,
    relayer,
    owner: sandboxOwner(),
    isDevelopment: true,
    logSearch: undefined,
  })
}
