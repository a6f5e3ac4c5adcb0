/** Whether a gateway with a chain of its own is the only such one on a database: of two, each would know half of the transfers. */
import pg from 'pg'
import type { Log } from '../base/log.ts'
import { asUnavailable } from './unavailable.ts'

/** One that was just told to end has a moment to do so. */
const WAIT_MS = 1_000

const LOCK_NOT_AVAILABLE = '55P03'

/**
 * Claims a database for this process's own chain until it is given back or the process ends, and says loudly where another
 * process has it. @param url `postgres://…` @returns gives it back. @throws Failure `provider_unavailable`.
 */
export async function claimForOwnChain({
  url,
  log,
}: {
  url: string
  log: Pick<Log, 'error'>
}): Promise<() => Promise<void>> {
  const client = new pg.Client({ connectionString: url, lock_timeout: WAIT_MS, keepAlive: true })
  // A connection that is lost later takes the claim with it, and nothing else.
  client.on('error', () => {})
  try {
    await client.connect()
    if (!(await isAlone(client)))
      log.error(
        {},
        'another gateway on this database has a chain of its own, as this one has: neither knows the transfers of the other, and balances go wrong. Give all but one of them CHAIN_RPC_URL.',
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
