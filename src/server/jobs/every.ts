/**
 * Jobs: finish work that a crash or a slow provider left open. May import base, ports, ledger, spending and domains.
 */
import type { Log } from '../../core/base/log.ts'
import type { Pace } from './pace.ts'

/** A running job. `stop` aborts the current round and waits for it. */
export interface Job {
  stop(): Promise<void>
}

/** One round of a job. @returns the number of open items it found; above zero it is activity. */
export type Round = (signal: AbortSignal) => Promise<number>

/**
 * Runs rounds at an interval, and rarely at rest. A failed round is logged and retried at the interval: it may have left work open.
 * @param intervalMs pause between rounds while work may be open. @property isAnnounced what it finds wakes the other gateways, too.
 */
export function every(
  intervalMs: number,
  {
    name,
    round,
    log,
    pace,
    isAnnounced = false,
  }: { name: string; round: Round; log: Log; pace: Pace; isAnnounced?: boolean | undefined },
): Job {
  const stopping = new AbortController()
  const loop = async () => {
    while (await pace.wait(intervalMs, stopping.signal))
      try {
        if ((await round(stopping.signal)) === 0) continue
        if (isAnnounced) pace.noteWrite()
        else pace.noteActivity()
      } catch (err) {
        log.error({ err, job: name }, 'a job failed and will be retried')
        pace.noteActivity()
      }
  }
  const running = loop()
  return {
    stop: () => {
      stopping.abort()
      return running
    },
  }
}
