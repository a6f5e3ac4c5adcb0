/** Finds the one of several PostgreSQL hosts that accepts writes. */
import pg from 'pg'

const PROBE_TIMEOUT_MS = 2_000

interface Probe {
  readonly url: string
  readonly is_standby: boolean
  /** Hexadecimal, of fixed length; a promotion raises it. */
  readonly timeline: string
}

/** A host that accepts writes, and the timeline of its log. */
export type WritableHost = Pick<Probe, 'url' | 'timeline'>

/**
 * Asks all hosts at once and returns the writable one; a single host is not asked. Of several, that is the one with the highest timeline: a former
 * primary that comes back also reports itself writable.
 * @param last host that was used before. A host of a lower timeline is a former primary. Another host of the same one is not its
 *   successor, because a promotion raises the timeline: its log has parted, and what was answered may be missing in it.
 * @throws the error of the first host if none is writable.
 */
export async function findWritableHost(urls: readonly string[], last?: WritableHost): Promise<WritableHost> {
  const [only, second] = urls
  if (only !== undefined && second === undefined) return { url: only, timeline: '' }
  const results = await Promise.allSettled(urls.map(probe))
  const writable = results
    .flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []))
    .filter((host) => !host.is_standby && succeeds(host, last))
    .sort((one, other) => (one.timeline < other.timeline ? 1 : -1))
  const [found] = writable
  if (found !== undefined) return found
  const failed = results.find((result) => result.status === 'rejected')
  throw failed?.reason ?? noPrimary()
}

function succeeds({ url, timeline }: Probe, last: WritableHost | undefined): boolean {
  return last === undefined || timeline > last.timeline || (timeline === last.timeline && url === last.url)
}

/** A standby answers, but no primary: the SQLSTATE of a server that is starting up. */
function noPrimary(): Error {
  return Object.assign(new Error('no host of DATABASE_URL accepts writes'), { code: '57P03' })
}

async function probe(url: string): Promise<Probe> {
  const client = new pg.Client({
    connectionString: url,
    connectionTimeoutMillis: PROBE_TIMEOUT_MS,
    query_timeout: PROBE_TIMEOUT_MS,
  })
  client.on('error', () => {})
  try {
    await client.connect()
    const { rows } = await client.query<Omit<Probe, 'url'>>(
      `select pg_is_in_recovery() as is_standby,
        case when pg_is_in_recovery() then '' else left(pg_walfile_name(pg_current_wal_lsn()), 8) end as timeline`,
    )
    const [row] = rows
    if (row === undefined) throw noPrimary()
    return { url, ...row }
  } finally {
    await client.end().catch(() => {})
  }
}
