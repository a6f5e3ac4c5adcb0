/**
 * Leases of counts. A client that sends many requests a second takes several counts from the store at once and uses
 * them up in this process, so that most of its requests ask the store nothing. Leased counts are already counted, so
 * no limit is exceeded. Only the first half of a window is leased, and unused counts go back after a second: the last
 * counts of a window are exact across all processes. While the store cannot be reached, what is leased can be used up.
 */
import { LRUCache } from 'lru-cache'
import { type Cancel, timers } from '../../core/base/timers.ts'
import type { RateLimit, RateLimiter } from './port.ts'
import { toVerdict, type Window } from './verdict.ts'

/** A window after a request. @property taken counts that were taken: the asked ones, or 1. */
export interface TakenWindow extends Window {
  readonly taken: number
}

/** Counts in windows, exact across all processes that share it. */
export interface WindowStore {
  /**
   * Counts one request; or `lease` requests at once, if the window is open and at most half full after them.
   * @throws when the store cannot be reached.
   */
  take(key: string, limit: RateLimit, now: Date, lease: number): Promise<TakenWindow>
  /** Reverses one count of an open window. @throws as `take`. */
  giveBack(key: string, limit: RateLimit, now: Date): Promise<void>
  /** Reverses unused counts of the window that opened then, unless it has rejected requests since. @throws as `take`. */
  endLease(key: string, limit: RateLimit, unused: UnusedCounts): Promise<void>
}

export interface UnusedCounts {
  readonly openedAt: Date
  readonly counts: number
}

const PERIOD_MS = 1_000
/** Requests in a period from which on counts are leased. */
const BUSY = 4
const MAX_LEASE = 256
/** A lease is at most this part of the limit. */
const SHARE = 16
/** A process that ends takes what it has leased with it, so counts of longer windows are taken one by one. */
const MAX_WINDOW_SECONDS = 60
const CLIENTS = 10_000

/** Counts taken from one window. @property left those that are not used. @property until on the monotonic clock. */
interface Lease {
  readonly limit: RateLimit
  readonly window: Window
  readonly until: number
  left: number
}

/**
 * A client in one class. @property seen its requests since `since`. @property before those of the period before.
 * @property moving a lease that is being taken or given back; others wait, or the store could refuse them for its counts.
 * @property fullUntil end of a window that has nothing to lease, in milliseconds.
 */
interface Client {
  since: number
  seen: number
  before: number
  moving: Promise<unknown> | null
  lease: Lease | null
  fullUntil: number
}

/** @property close gives back what is leased. */
export interface LeasedRateLimiter extends RateLimiter {
  close(): Promise<void>
}

/** The rate limiter port over a store. */
export function leasedRateLimiter(store: WindowStore): LeasedRateLimiter {
  const end = async (key: string, client: Client): Promise<void> => {
    const { lease } = client
    client.lease = null
    if (lease === null || lease.left === 0) return
    const unused = { openedAt: new Date(lease.window.openedMs), counts: lease.left }
    // A store that is not reached keeps them until the window ends.
    await store.endLease(key, lease.limit, unused).catch(() => {})
  }
  const clients = new LRUCache<string, Client>({
    max: CLIENTS,
    dispose: (client, key) => void end(key, client),
  })
  let cancelSweep: Cancel | undefined
  /** Runs work on a client's lease, for which its other requests wait. */
  const moving = async <Result>(client: Client, work: () => Promise<Result>): Promise<Result> => {
    const running = work()
    client.moving = running.catch(() => {})
    try {
      return await running
    } finally {
      client.moving = null
    }
  }
  const sweep = async () => {
    // One after the other: money statements of the same database do not wait for many.
    for (const [key, client] of [...clients]) {
      const now = timers.monotonic()
      const isOver = client.lease !== null && client.lease.until <= now
      if (isOver && client.moving === null) await moving(client, () => end(key, client))
      if (now >= client.since + 2 * PERIOD_MS && clients.peek(key) === client) clients.delete(key)
    }
    cancelSweep = clients.size === 0 ? undefined : sweepLater()
  }
  const sweepLater = () => timers.after(PERIOD_MS, () => void sweep(), { isIdle: true })
  const findClient = (key: string): Client => {
    const now = timers.monotonic()
    const known = clients.get(key)
    const client = known ?? { since: now, seen: 0, before: 0, moving: null, lease: null, fullUntil: 0 }
    if (known === undefined) clients.set(key, client)
    if (now >= client.since + PERIOD_MS) {
      client.before = now < client.since + 2 * PERIOD_MS ? client.seen : 0
      client.since = now
      client.seen = 0
    }
    client.seen += 1
    cancelSweep ??= sweepLater()
    return client
  }
  const takeLease = async (key: string, limit: RateLimit, now: Date, client: Client): Promise<Window> => {
    await end(key, client)
    const asked = chooseLeaseSize(client, limit, now)
    const { taken, ...window } = await store.take(key, limit, now, asked)
    if (taken < asked && window.count > 1) client.fullUntil = window.openedMs + limit.seconds * 1000
    client.lease = { limit, window, until: timers.monotonic() + PERIOD_MS, left: taken - 1 }
    if (clients.peek(key) !== client) void end(key, client)
    return { ...window, count: window.count - taken + 1 }
  }
  const take: RateLimiter['take'] = async (key, limit, now) => {
    const client = findClient(key)
    let hasWaited = false
    for (;;) {
      if (client.lease !== null && isUsable(client.lease, limit, now)) {
        client.lease.left -= 1
        const { window, left } = client.lease
        return toVerdict({ ...window, count: window.count - left }, limit, now)
      }
      if (client.moving === null) break
      hasWaited = true
      await client.moving
    }
    // One that has waited takes a single count: the lease of one would compete with the counts of the others.
    const isBusy = !hasWaited && chooseLeaseSize(client, limit, now) > 1
    const window = isBusy
      ? await moving(client, () => takeLease(key, limit, now, client))
      : await store.take(key, limit, now, 1)
    return toVerdict(window, limit, now)
  }
  return {
    take,
    // Requests of one moment share a round trip.
    takeAll: (windows, now) => Promise.all(windows.map(({ key, limit }) => take(key, limit, now))),
    giveBack: (key, limit, now) => store.giveBack(key, limit, now),
    close: async () => {
      cancelSweep?.()
      await Promise.all([...clients].map(([key, client]) => end(key, client)))
      clients.clear()
    },
  }
}

function chooseLeaseSize({ seen, before, fullUntil }: Client, limit: RateLimit, now: Date): number {
  const busy = Math.max(seen, before)
  if (busy < BUSY || limit.seconds > MAX_WINDOW_SECONDS || now.getTime() < fullUntil) return 1
  return Math.max(1, Math.min(busy, MAX_LEASE, Math.floor(limit.count / SHARE)))
}

/** A clock may be set back, and the next configuration may have another limit. */
function isUsable({ limit, window, until, left }: Lease, asked: RateLimit, now: Date): boolean {
  const passedMs = now.getTime() - window.openedMs
  const isSame = limit.count === asked.count && limit.seconds === asked.seconds
  return left > 0 && isSame && passedMs >= 0 && passedMs < limit.seconds * 1000 && timers.monotonic() < until
}
