/** A session on a development node: set up as far as needed, with a sponsor that has all the gas it wants. */
import type { Hex } from '../../chain.ts'
import { sandboxOwner } from '../keys.ts'
import { createLanes } from '../relay/lanes.ts'
import type { NodeClient } from '../rpc/client.ts'
import { sandboxTokenAddresses } from '../rpc/networks.ts'
import { deployMissing } from './deploy.ts'
import { type EvmSession, openSession } from './evm-session.ts'

/** Sets the node up and opens a session. @param seed what the sponsor's keys are made from. */
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
