import { expect, it } from 'vitest'
import { systemClock } from '../../../src/core/base/clock.ts'
import { createEventWatches } from '../../../src/records/events/watch-events.ts'
import { publishNewEvents } from '../../../src/server/jobs/publish-events.ts'
import type { Database } from '../../../src/storage/database.ts'
import { openAccount, openKey } from '../../books/spending/scene.ts'
import { onBothEngines } from '../../engines.ts'

onBothEngines('publishing', (database) => {
  it('wakes readers although events never cease', async () => {
    const accountId = await openAccount(database(), 1n)
    // Whenever events have been published, there are new ones.
    const busy: Database = {
      ...database(),
      call: async (statement, parameters) => {
        const rows = await database().call(statement, parameters)
        if (statement.name === 'events_publish') await openKey(database(), accountId)
        // The rows are those of the statement that the caller named.
        return rows as never
      },
    }
    const eventWatches = createEventWatches(busy)
    const watch = eventWatches.open(accountId)
    const ending = new AbortController()
    const timer = setTimeout(() => ending.abort(), 10_000)
    const publishing = publishNewEvents({ database: busy, clock: systemClock, eventWatches }, ending.signal)
    await watch?.wait(0n, 8_000, ending.signal)
    expect(watch?.head()).toBeGreaterThan(0n)
    clearTimeout(timer)
    ending.abort()
    await publishing
  })
})
