/** Shared polling: each round makes one query, however many callers wait. */
import { timers } from './timers.ts'

export interface Waiters<Seen> {
  /** @returns the result; undefined if the signal aborted the wait. @throws errors of the query. */
  until(id: string, signal: AbortSignal): Promise<Seen | undefined>
}

interface Waiter<Seen> {
  readonly id: string
  readonly settle: (seen: Seen | undefined) => void
  readonly fail: (error: unknown) => void
}

/** Polls while there are waiters. @param look returns the results of finished ids; missing ids keep waiting. */
export function createPoller<Seen>({
  everyMs,
  look,
}: {
  everyMs: number
  look: (ids: readonly string[]) => Promise<ReadonlyMap<string, Seen>>
}): Waiters<Seen> {
  const waiting = new Set<Waiter<Seen>>()
  let isPolling = false

  async function poll(): Promise<void> {
    isPolling = true
    while (waiting.size > 0) {
      const batch = [...waiting]
      try {
        const seen = await look([...new Set(batch.map(({ id }) => id))])
        for (const { id, settle } of batch) if (seen.has(id)) settle(seen.get(id))
      } catch (error) {
        for (const { fail } of batch) fail(error)
      }
      if (waiting.size > 0) await timers.sleep(everyMs)
    }
    isPolling = false
  }

  return {
    until: (id, signal) =>
      new Promise((resolve, reject) => {
        const leave = () => {
          waiting.delete(waiter)
          signal.removeEventListener('abort', abort)
        }
        const waiter: Waiter<Seen> = {
          id,
          settle: (seen) => {
            leave()
            resolve(seen)
          },
          fail: (error) => {
            leave()
            reject(error)
          },
        }
        const abort = () => waiter.settle(undefined)
        if (signal.aborted) {
          resolve(undefined)
          return
        }
        signal.addEventListener('abort', abort)
        waiting.add(waiter)
        if (!isPolling) void poll()
      }),
  }
}
