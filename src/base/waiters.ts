/** One look for all who wait: however many wait, what they wait for is read once a round. */
import { setTimeout as sleep } from 'node:timers/promises'

/** Waits for things by their ids. */
export interface Waiters<Seen> {
  /** @returns what was seen of it; undefined where the signal ended the wait. @throws what looking threw. */
  until(id: string, signal: AbortSignal): Promise<Seen | undefined>
}

interface Waiter<Seen> {
  readonly id: string
  readonly settle: (seen: Seen | undefined) => void
  readonly fail: (error: unknown) => void
}

/** Looks while anybody waits. @param look answers what has come of the ids; what is absent is waited for. */
export function createWaiters<Seen>({
  everyMs,
  look,
}: {
  everyMs: number
  look: (ids: readonly string[]) => Promise<ReadonlyMap<string, Seen>>
}): Waiters<Seen> {
  const waiting = new Set<Waiter<Seen>>()
  let isLooking = false

  async function lookAround(): Promise<void> {
    isLooking = true
    while (waiting.size > 0) {
      const asked = [...waiting]
      try {
        const seen = await look([...new Set(asked.map(({ id }) => id))])
        for (const { id, settle } of asked) if (seen.has(id)) settle(seen.get(id))
      } catch (error) {
        for (const { fail } of asked) fail(error)
      }
      if (waiting.size > 0) await sleep(everyMs)
    }
    isLooking = false
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
        if (!isLooking) void lookAround()
      }),
  }
}
