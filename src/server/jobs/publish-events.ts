/** Publishes events, and wakes the streams of this gateway. */

import type { Services } from '../../kernel/context.ts'
import { PUBLISH_BATCH, publishEvents } from '../../records/events/publish.ts'

export async function publishNewEvents(
  { database, clock, eventWatches }: Pick<Services, 'database' | 'clock' | 'eventWatches'>,
  signal: AbortSignal,
): Promise<number> {
  let published = 0
  // Readers are woken after each batch: under a steady flow, one batch follows the other.
  for (let moved = PUBLISH_BATCH; moved === PUBLISH_BATCH && !signal.aborted; published += moved) {
    moved = await publishEvents(database, clock())
    await eventWatches.check()
  }
  return published
}
