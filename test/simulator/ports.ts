/** The time and randomness of one gateway: it is known whose task each timer is, and a crash drops it. */
import { createPrivateKey, type KeyObject } from 'node:crypto'
import type { Clock } from '../../src/core/base/clock.ts'
import type { Random } from '../../src/core/base/random.ts'
import type { Timers } from '../../src/core/base/timers.ts'
import { type Owner, type Scheduler, START } from './scheduler.ts'

/** Starts above zero: caches take zero for "no age". */
const MONOTONIC_START_MS = 1_000
const PKCS8_ED25519 = Buffer.from('302e020100300506032b657004220420', 'hex')

export function timersOf(scheduler: Scheduler, owner: Owner): Timers {
  return {
    monotonic: () => scheduler.now - START + MONOTONIC_START_MS,
    sleep: (ms, { signal } = {}) =>
      new Promise((resolve, reject) => {
        const abort = () => {
          cancel()
          const error = new Error('The operation was aborted', { cause: signal?.reason })
          reject(Object.assign(error, { name: 'AbortError', code: 'ABORT_ERR' }))
        }
        const cancel = scheduler.after(owner, ms, 'sleep', () => {
          signal?.removeEventListener('abort', abort)
          resolve()
        })
        if (signal?.aborted) abort()
        else signal?.addEventListener('abort', abort, { once: true })
      }),
    after: (ms, work) => scheduler.after(owner, ms, 'timer', work),
    every: (ms, work) => {
      let cancel = () => {}
      const wait = () => {
        cancel = scheduler.after(owner, ms, 'interval', () => {
          wait()
          work()
        })
      }
      wait()
      return () => cancel()
    },
    soon: (work) => scheduler.schedule(owner, 'soon', work),
    deadline: (ms) => {
      const ending = new AbortController()
      const late = new DOMException('The operation was aborted due to timeout', 'TimeoutError')
      scheduler.after(owner, ms, 'deadline', () => ending.abort(late))
      return ending.signal
    },
  }
}

export function portsOf(
  scheduler: Scheduler,
  owner: Owner,
  rsaKey: KeyObject,
): { timers: Timers; random: Random; clock: Clock } {
  const { bytes } = scheduler
  const timers = timersOf(scheduler, owner)
  const random: Random = {
    bytes: (length) => bytes.fill(Buffer.alloc(length)),
    below: (limit) => bytes.below(limit),
    ed25519Key: () => {
      const key = Buffer.concat([PKCS8_ED25519, bytes.fill(Buffer.alloc(32))])
      return createPrivateKey({ key, format: 'der', type: 'pkcs8' })
    },
    rsaKey: async () => {
      await timers.sleep(1)
      return rsaKey
    },
  }
  return { timers, random, clock: () => new Date(scheduler.now + owner.skew) }
}
