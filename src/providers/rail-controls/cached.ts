/**
 * Cached rail controls, so that money routes do not query the control plane on every call. An answer may be stale for
 * `ttlMs`: a disabled rail stops within that time on every instance.
 */
import { LRUCache } from 'lru-cache'
import type { Clock } from '../../core/base/clock.ts'
import { type RailControl, type RailControls, type RailId, railIds } from './port.ts'

/** Cache lifetimes in milliseconds. Failures are cached too, so that an outage does not slow down every request. */
export interface CacheTimes {
  readonly ttlMs?: number
  readonly failureTtlMs?: number
}

/** Caches another adapter. Concurrent reads of one rail share one request. */
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
  const read = (rail: RailId): Promise<RailControl> => {
    const reading = controls.read(rail)
    const keepFor = (ttl: number) => () => void answers.set(rail, reading, { ttl })
    answers.set(rail, reading)
    reading.then(keepFor(ttlMs), keepFor(failureTtlMs))
    return reading
  }
  return {
    read: (rail) => answers.get(rail) ?? read(rail),
    write: async (control, at, also) => {
      await controls.write(control, at, also)
      answers.delete(control.rail)
    },
  }
}
