import type { Log } from '../../core/base/log.ts'
import type { Config } from '../../core/config/read-config.ts'
import type { Database } from '../../storage/database.ts'
import { createChainlinkPegs } from './chainlink.ts'
import type { Pegs } from './port.ts'
import { createSandboxPegs } from './sandbox.ts'

/** Prices of stablecoins: the configured feeds on the first chain, or in a sandbox those that are set; null: no peg is watched. */
export function createConfiguredPegs(
  { mode, pegFeeds, chains: [{ rpcUrl }] }: Pick<Config, 'mode' | 'pegFeeds' | 'chains'>,
  { database, log }: { database: Pick<Database, 'kysely'>; log: Log },
): Pegs | null {
  if (pegFeeds.size > 0 && rpcUrl !== null) return createChainlinkPegs({ url: rpcUrl, feeds: pegFeeds, log })
  return mode === 'sandbox' ? createSandboxPegs(database) : null
}
