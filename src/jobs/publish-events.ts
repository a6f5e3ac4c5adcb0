/** Publishes events, and wakes the streams of this gateway. */
import { publishEvents } from '../events/publish.ts'
import type { Services } from '../kernel/context.ts'

export async function publishNewEvents(
  { database, clock, eventWatches }: Pick<Services, 'database' | 'clock' | 'eventWatches'>,
  signal: AbortSignal,
): Promise<number> {
  let published = 0
  for (let moved = -1; moved !== 0 && !signal.aborted; published += moved)
    moved = await publishEvents(database, clock())
  await eventWatches.check()
  return published
}
