/** Keeps partitions by month ahead of the calendar. Rows of a month without one are in the default partition, so nothing waits for this. */

import { random } from '../core/base/random.ts'
import { timers } from '../core/base/timers.ts'
import type { Connection, Statement } from './database.ts'
import { isLockTimeout } from './unavailable.ts'

const missing: Statement = {
  name: 'partitions_missing',
  text: 'select parent, prefix, month from partitions_missing($1)',
}

const make: Statement = { name: 'partition_make', text: 'select partition_make($1, $2, $3)::text as made' }

interface Partition {
  readonly parent: string
  readonly prefix: string
  readonly month: Date
}

/** A transaction rarely holds a table for longer than this many attempts take. */
const MAX_ATTEMPTS = 100
const MAX_WAIT_MS = 200

/** Makes the partitions of a time's month and of the next two. @throws database errors; the next round tries again. */
export async function keepPartitions(database: Pick<Connection, 'call'>, at: Date): Promise<void> {
  for (const { parent, prefix, month } of await database.call<Partition>(missing, [at]))
    await retryLocks(() => database.call(make, [parent, prefix, month]))
}

/** Repeats what gives up instead of making others wait behind it. */
export async function retryLocks<Result>(run: () => Promise<Result>): Promise<Result> {
  for (let left = MAX_ATTEMPTS; left > 1; left -= 1) {
    try {
      return await run()
    } catch (error) {
      if (!isLockTimeout(error)) throw error
    }
    await timers.sleep(random.below(MAX_WAIT_MS))
  }
  return run()
}
