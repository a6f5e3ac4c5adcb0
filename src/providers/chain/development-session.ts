/** A session on a development node: set up as far as needed, with a sponsor that has all the gas it wants. */
import type { LocalAccount } from 'viem/accounts'
import type { NodeClient } from './client.ts'
import { deployMissing } from './deploy.ts'
import { developmentFees, plenty, setNativeBalance } from './development-node.ts'
import { type EvmSession, openSession } from './evm-session.ts'
import type { Opened } from './gate.ts'
import { sandboxOwner } from './keys.ts'
import { sandboxTokenAddresses } from './networks.ts'

/** Sets the node up and opens a session; `isFresh` where the tokens were missing. */
export async function openDevelopmentSession(
  client: NodeClient,
  sponsor: LocalAccount,
): Promise<Opened<EvmSession>> {
  const [{ contracts, isFresh }] = await Promise.all([
    deployMissing(client),
    setNativeBalance(client, sponsor.address, plenty),
  ])
  const session = await openSession({
    client,
    contracts,
    tokens: sandboxTokenAddresses,
    sponsor,
    owner: sandboxOwner(),
    fees: async () => developmentFees,
    isDevelopment: true,
    logSearch: undefined,
  })
  return { session, isFresh }
}
