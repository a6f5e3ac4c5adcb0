/**
 * Jobs: finish work that a crash or a slow provider left open. May import base, ports, ledger, spending and domains.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Log } from '../base/log.ts'

/** A running job. `stop` aborts the current round and waits for it. */
export interface Job {
  stop(): Promise<void>
}

/** Runs rounds at an interval. A failed round is logged and retried. @param intervalMs pause between rounds. */
export function every(
  intervalMs: number,
  { name, round, log }: { name: string; round: (signal: AbortSignal) => Promise<void>; log: Log },
): Job {
  const stopping = new AbortController()
  const loop = async () => {
    while (!stopping.signal.aborted) {
      const isDue = await sleep(intervalMs, true, { signal: stopping.signal }).catch(() => false)
      if (!isDue) return
      await round(stopping.signal).catch((err: unknown) =>
        log.error({ err, job: name }, 'a job failed and will be retried'),
      )
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
