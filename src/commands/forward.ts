/** Sends events to a local program as signed webhooks, in order. A slow or dead target delays only itself. */
import type { Event } from '../client/index.ts'
import { systemClock } from '../core/base/clock.ts'
import { timers } from '../core/base/timers.ts'
import { rootCause } from '../core/failures/root-cause.ts'
import { signWebhook } from '../providers/standard-webhooks.ts'

const TIMEOUT_MS = 10_000
/** Events that wait for the target. */
const MAX_WAITING = 100
/** Time for what waits when the command ends. */
const DRAIN_MS = 1_000

export interface Forwarder {
  /** Queues an event; when the queue is full, it is dropped and reported. */
  readonly push: (event: Event) => void
  /** Waits a moment for the queue. @returns how many events were answered with 2xx, and how many were not delivered. */
  readonly end: () => Promise<{ delivered: number; lost: number }>
}

export function startForwarding({
  target,
  secret,
  tell,
}: {
  target: URL
  secret: string
  tell: (line: string) => void
}): Forwarder {
  const waiting: Event[] = []
  const ended = new AbortController()
  const counts = { delivered: 0, lost: 0 }
  let running: Promise<void> | null = null

  async function send(event: Event): Promise<void> {
    const body = JSON.stringify(event)
    const startedAt = systemClock()
    const took = () => `${systemClock().getTime() - startedAt.getTime()} ms`
    try {
      const response = await fetch(target, {
        method: 'POST',
        redirect: 'manual',
        headers: {
          'content-type': 'application/json',
          ...signWebhook({ id: event.id, body, at: startedAt }, secret),
        },
        body,
        signal: AbortSignal.any([timers.deadline(TIMEOUT_MS), ended.signal]),
      })
      await response.body?.cancel()
      counts[response.ok ? 'delivered' : 'lost'] += 1
      tell(`  → ${response.status} in ${took()}  ${event.id}`)
    } catch (error) {
      counts.lost += 1
      tell(`  → no answer after ${took()}: ${rootCause(error)}  ${event.id}`)
    }
  }

  async function drain(): Promise<void> {
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
      if (ended.signal.aborted) counts.lost += 1
      else await send(next)
    }
    running = null
  }

  return {
    push(event) {
      if (waiting.length >= MAX_WAITING) {
        counts.lost += 1
        tell(`  → dropped: ${MAX_WAITING} events wait for ${target.host}  ${event.id}`)
        return
      }
      waiting.push(event)
      running ??= drain()
    },
    async end() {
      if (running !== null) await Promise.race([running, timers.sleep(DRAIN_MS)])
      ended.abort(new Error('the command ended'))
      if (running !== null) await running
      return counts
    },
  }
}
