/**
 * Rail controls with a short memory, so that money routes do not ask the control plane on every call. What it answers may
 * be stale for `ttlMs`: a rail that was switched off closes within that time on every instance.
 */
import { LRUCache } from 'lru-cache'
import type { Clock } from '../../base/clock.ts'
import { type RailControl, type RailControls, type RailId, railIds } from '../rail-controls.ts'

/** How long answers are kept, in milliseconds. A failure is kept too, or an outage would be met by every single request. */
export interface CacheTimes {
  readonly ttlMs?: number
  readonly failureTtlMs?: number
}

/** Caches another adapter. Reads of one rail that come while it is being read share that read. */
export function cachedRailControls(
  { controls, clock }: { readonly controls: RailControls; readonly clock: Clock },
  { ttlMs = 1500, failureTtlMs = 500 }: CacheTimes = {},
): RailControls {
  const answers = new LRUCache<RailId, Promise<RailControl>>({
    max: railIds.length,
    ttlAutopurge: false,
    ttlResolution: 0,
    perf: { now: () => clock().getTime() },
  })
  const ask = (rail: RailId): Promise<RailControl> => {
    const asked = controls.read(rail)
    const keepFor = (ttl: number) => () => void answers.set(rail, asked, { ttl })
    answers.set(rail, asked)
    asked.then(keepFor(ttlMs), keepFor(failureTtlMs))
    return asked
  }
  return {
    read: (rail) => answers.get(rail) ?? ask(rail),
    write: async (control, at, also) => {
      await controls.write(control, at, also)
      answers.delete(control.rail)
    },
  }
}
