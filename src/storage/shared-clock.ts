/**
 * One clock for all gateways on a database: the server's clock. Unsynchronized machine clocks would give two gateways
 * different budget days, and one would drop nonces that the other still accepts. Between synchronizations, time
 * advances monotonically, independent of steps of the machine clock.
 */
import type { Clock } from '../core/base/clock.ts'
import type { Log } from '../core/base/log.ts'
import { timers } from '../core/base/timers.ts'
import type { Connection } from './database.ts'

/** Larger offsets of the machine clock are logged. */
const MAX_OFFSET_MS = 5_000

export interface SharedClock {
  readonly clock: Clock
  /** Synchronizes with the server; keeps the current offset on failure. */
  set(): Promise<void>
}

const moment = { name: 'shared_clock', text: 'select clock_timestamp() as now' }

/** @throws Failure `provider_unavailable` when the database is unreachable. */
export async function createSharedClock(
  database: Pick<Connection, 'call'>,
  { own, log }: { own: Clock; log: Pick<Log, 'warn'> },
): Promise<SharedClock> {
  /** Server time at the zero of `timers.monotonic()`. */
  let zeroMs: number | undefined
  const set = async () => {
    const sentAt = timers.monotonic()
    const [row] = await database.call<{ now: Date }>(moment, [])
    const receivedAt = timers.monotonic()
    if (row === undefined) throw new Error('the database returned no time')
    const readMs = row.now.getTime() - (sentAt + receivedAt) / 2
    // Differences within the network delay are ignored, so that time does not jump.
    if (zeroMs === undefined || Math.abs(readMs - zeroMs) > (receivedAt - sentAt) / 2 + 1) zeroMs = readMs
    const offMs = own().getTime() - (zeroMs + timers.monotonic())
    if (Math.abs(offMs) > MAX_OFFSET_MS)
      log.warn(
        { offSeconds: Math.round(offMs / 1000) },
        'this machine’s clock differs from the database’s, which is used',
      )
  }
  await set()
  return { clock: () => new Date((zeroMs ?? own().getTime()) + timers.monotonic()), set }
}
