import type { Log } from '../../base/log.ts'
import type { Config } from '../../config/read-config.ts'
import type { Database } from '../../storage/database.ts'
import type { Pegs } from '../pegs.ts'
import { createChainlinkPegs } from './chainlink.ts'
import { createSandboxPegs } from './sandbox.ts'

/** Prices of stablecoins: the configured feeds, or in a sandbox those that are set; null: no peg is watched. */
export function createConfiguredPegs(
  { mode, pegFeeds, chain }: Pick<Config, 'mode' | 'pegFeeds'> & { chain: Pick<Config['chain'], 'rpcUrl'> },
  { database, log }: { database: Pick<Database, 'kysely'>; log: Log },
): Pegs | null {
  if (pegFeeds.size > 0 && chain.rpcUrl !== null)
    return createChainlinkPegs({ url: chain.rpcUrl, feeds: pegFeeds, log })
  return mode === 'sandbox' ? createSandboxPegs(database) : null
}
