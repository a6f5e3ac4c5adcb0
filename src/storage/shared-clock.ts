/**
 * One clock for all gateways of a database: that of its server. Machines' clocks differ by minutes where nobody looks after
 * them; by their own, two gateways would have two days to budget, and one would forget a nonce that the other still takes.
 * The machine's clock is not even asked between two looks: its steps reach nobody.
 */
import type { Clock } from '../base/clock.ts'
import type { Log } from '../base/log.ts'
import type { Connection } from './database.ts'

/** Further off than this, somebody should look after the machine's clock. */
const TOLERABLE_MS = 5_000

/** The clock, and how it is set again. */
export interface SharedClock {
  readonly clock: Clock
  /** Looks at the server's clock; where that cannot be had, goes on as before. */
  set(): Promise<void>
}

const moment = { name: 'shared_clock', text: 'select clock_timestamp() as now' }

/** A clock that is set to the database's. @throws Failure `provider_unavailable` where that cannot be asked. */
export async function createSharedClock(
  database: Pick<Connection, 'call'>,
  { own, log }: { own: Clock; log: Pick<Log, 'warn'> },
): Promise<SharedClock> {
  /** The server's time at this process's zero. */
  let zeroMs: number | undefined
  const set = async () => {
    const asked = performance.now()
    const [row] = await database.call<{ now: Date }>(moment, [])
    const answered = performance.now()
    if (row === undefined) throw new Error('the database told no time')
    const readMs = row.now.getTime() - (asked + answered) / 2
    // Within what the way there may have taken nothing is known better than before: time does not jump for that.
    if (zeroMs === undefined || Math.abs(readMs - zeroMs) > (answered - asked) / 2 + 1) zeroMs = readMs
    const offMs = own().getTime() - (zeroMs + performance.now())
    if (Math.abs(offMs) > TOLERABLE_MS)
      log.warn(
        { offSeconds: Math.round(offMs / 1000) },
        'this machine’s clock is not that of the database; the database’s counts',
      )
  }
  await set()
  return { clock: () => new Date((zeroMs ?? own().getTime()) + performance.now()), set }
}
