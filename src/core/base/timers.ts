/**
 * Everything that waits or measures time, as a port: a simulator installs its own through `ports.ts`. The wall clock is
 * in `clock.ts`. The only file that uses the timers of Node.
 */
import { setTimeout as sleep } from 'node:timers/promises'

/** Ends a timer. Has no effect after the timer has run or ended. */
export type Cancel = () => void

/** @property isIdle the timer does not keep the process alive. */
interface TimerOptions {
  readonly isIdle?: boolean
}

interface SleepOptions extends TimerOptions {
  readonly signal?: AbortSignal | undefined
}

export interface Timers {
  /** Milliseconds since an arbitrary start. Never goes back. */
  monotonic(): number
  /** @throws Error named `AbortError` when the signal is aborted. */
  sleep(ms: number, options?: SleepOptions): Promise<void>
  /** Runs the work once. */
  after(ms: number, work: () => void, options?: TimerOptions): Cancel
  /** Runs the work at this interval until it is canceled. */
  every(ms: number, work: () => void, options?: TimerOptions): Cancel
  /** Runs the work in the next turn of the event loop, after pending input was read. */
  soon(work: () => void): void
  /** A signal that aborts with a `TimeoutError`. It does not keep the process alive. @param ms whole number. */
  deadline(ms: number): AbortSignal
}

/** Looks the globals up at each call, because tests replace them. */
export const systemTimers: Timers = {
  monotonic: () => performance.now(),
  sleep: (ms, { signal, isIdle = false } = {}) => sleep(ms, undefined, { signal, ref: !isIdle }),
  after: (ms, work, { isIdle = false } = {}) => {
    const timer = setTimeout(work, ms)
    if (isIdle) timer.unref()
    return () => clearTimeout(timer)
  },
  every: (ms, work, { isIdle = false } = {}) => {
    const timer = setInterval(work, ms)
    if (isIdle) timer.unref()
    return () => clearInterval(timer)
  },
  soon: (work) => void setImmediate(work),
  deadline: (ms) => AbortSignal.timeout(ms),
}

let installed = systemTimers

/** The installed timers, by default the system's. A port that wraps another wraps {@link systemTimers}. */
export const timers: Timers = {
  monotonic: () => installed.monotonic(),
  sleep: (ms, options) => installed.sleep(ms, options),
  after: (ms, work, options) => installed.after(ms, work, options),
  every: (ms, work, options) => installed.every(ms, work, options),
  soon: (work) => installed.soon(work),
  deadline: (ms) => installed.deadline(ms),
}

/** @returns the timers that were installed before. */
export function installTimers(next: Timers): Timers {
  const before = installed
  installed = next
  return before
}
