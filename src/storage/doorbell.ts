import pg from 'pg'
import { splitHosts } from '../core/base/host-urls.ts'
import { randomToken } from '../core/base/ids.ts'
import type { Log } from '../core/base/log.ts'
import { type Cancel, timers } from '../core/base/timers.ts'
import type { Doorbell } from './database.ts'
import { findWritableHost } from './postgres-hosts.ts'

const CHANNEL = 'bursar_activity'
const RETRY_MS = 2_000
const CONNECT_TIMEOUT_MS = 3_000
/** A server that left without a word, cut off or without power, is noticed by its silence. */
const SILENCE_MS = 6_000
const KEEP_ALIVE_MS = 10_000

/**
 * Listens on a connection of its own, which is opened again whenever it is lost.
 * @param url direct connection; a pooler in transaction mode delivers no notifications.
 * @param onRing called for announcements of other gateways, and after every reconnection.
 * @param silenceMs how long a server may take to accept an announcement.
 */
export function openDoorbell({
  url,
  onRing,
  log,
  silenceMs = SILENCE_MS,
}: {
  url: string
  onRing: () => void
  log: Log
  silenceMs?: number
}): Doorbell {
  const urls = splitHosts(url)
  // Process ids repeat: in a container, every gateway is process 1.
  const self = randomToken(12)
  let client: pg.Client | undefined
  let cancelRetry: Cancel | undefined
  let isClosed = false
  const retryLater = () => {
    if (isClosed || cancelRetry !== undefined) return
    const retry = () => {
      cancelRetry = undefined
      void connect()
    }
    cancelRetry = timers.after(RETRY_MS, retry, { isIdle: true })
  }
  const connect = async () => {
    let opened: pg.Client | undefined
    try {
      const host = await findWritableHost(urls)
      const created = new pg.Client({
        connectionString: host.url,
        connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
        query_timeout: silenceMs,
        keepAlive: true,
        keepAliveInitialDelayMillis: KEEP_ALIVE_MS,
        application_name: 'bursar doorbell',
      })
      opened = created
      const lose = () => {
        if (client === created) client = undefined
        retryLater()
      }
      created.on('error', lose)
      created.on('end', lose)
      created.on('notification', ({ payload }) => {
        if (payload !== self) onRing()
      })
      await created.connect()
      await created.query(`listen ${CHANNEL}`)
      client = created
      onRing()
      if (isClosed) await created.end()
    } catch (err) {
      log.debug({ err }, 'listening for activity of other gateways failed and will be retried')
      await opened?.end().catch(() => {})
      retryLater()
    }
  }
  const connecting = connect()
  return {
    ring: () => {
      const listening = client
      // The end of a connection has it opened again.
      listening?.query(`notify ${CHANNEL}, '${self}'`).catch(() => listening.end())
    },
    close: async () => {
      isClosed = true
      cancelRetry?.()
      await connecting
      await client?.end().catch(() => {})
    },
  }
}
