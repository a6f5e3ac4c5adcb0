/** Detects several gateways with their own local chains on one database: each would miss the other's transfers. */
import pg from 'pg'
import { splitHosts } from '../core/base/host-urls.ts'
import type { Log } from '../core/base/log.ts'
import { findWritableHost } from './postgres-hosts.ts'
import { asUnavailable } from './unavailable.ts'

/** Gives a gateway that is shutting down time to exit. */
const WAIT_MS = 1_000

const LOCK_NOT_AVAILABLE = '55P03'

/**
 * Claims a database for this process's local chain until release or exit; logs an error if another process holds the
 * claim. @param url `postgres://…` @returns a function that releases the claim.
 * @throws Failure `provider_unavailable`.
 */
export async function claimForOwnChain({
  url,
  log,
}: {
  url: string
  log: Pick<Log, 'error'>
}): Promise<() => Promise<void>> {
  const writable = await findWritableHost(splitHosts(url)).catch((error: unknown) => {
    throw asUnavailable(error)
  })
  const client = new pg.Client({ connectionString: writable.url, lock_timeout: WAIT_MS, keepAlive: true })
  // Losing the connection later only loses the claim.
  client.on('error', () => {})
  try {
    await client.connect()
    if (!(await isAlone(client)))
      log.error(
        {},
        'another gateway on this database also runs its own local chain: each misses the transfers of the other, and balances become wrong. Set CHAIN_RPC_URL for all gateways but one.',
      )
    return () => client.end()
  } catch (error) {
    await client.end().catch(() => {})
    throw asUnavailable(error)
  }
}

async function isAlone(client: pg.Client): Promise<boolean> {
  try {
    await client.query("select pg_advisory_lock(hashtext('bursar chain'), hashtext('own'))")
    return true
  } catch (error) {
    if (error instanceof pg.DatabaseError && error.code === LOCK_NOT_AVAILABLE) return false
    throw error
  }
}
