/** Jobs: what a crash or a slow provider left open is finished here. May import base, ports, ledger, spending and domains. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Log } from '../base/log.ts'

/** A job that runs until it is stopped. `stop` tells a round that is under way, and waits for it. */
export interface Job {
  stop(): Promise<void>
}

/** Runs a round, waits, and runs the next. A round that fails is logged and tried again. @param intervalMs between rounds. */
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
        log.error({ err, job: name }, 'a job failed and will be tried again'),
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
