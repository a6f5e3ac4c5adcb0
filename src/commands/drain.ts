/** Graceful shutdown within ten seconds, the usual grace period of orchestrators. */
import type { Server, ServerResponse } from 'node:http'
import type { Log } from '../core/base/log.ts'
import { type Cancel, timers } from '../core/base/timers.ts'

/** Time for pending requests to finish. */
const DRAIN_MS = 8_000
/** Time for dependencies to close afterwards. */
const CLOSE_MS = 1_500

const IDLE_CHECK_MS = 100

const signals = ['SIGTERM', 'SIGINT'] as const

/**
 * Resolves on the first termination signal. A second signal ends the process immediately, because the handlers are
 * removed.
 */
export function endSignal(): Promise<string> {
  return new Promise((resolve) => {
    const end = (signal: NodeJS.Signals) => {
      for (const each of signals) process.off(each, end)
      resolve(signal)
    }
    for (const signal of signals) process.on(signal, end)
  })
}

/** Stops accepting connections, lets pending requests finish, and cuts the rest after {@link DRAIN_MS}. */
export async function drain(server: Server): Promise<void> {
  const ended = new Promise<void>((resolve) => server.close(() => resolve()))
  // Otherwise a client could keep sending requests over one connection until the end.
  server.prependListener('request', (_request, response: ServerResponse) => {
    response.shouldKeepAlive = false
  })
  server.closeIdleConnections()
  // Connections that become idle during the drain must be closed too.
  const endIdleChecks = timers.every(IDLE_CHECK_MS, () => server.closeIdleConnections())
  const cancelCut = timers.after(DRAIN_MS, () => server.closeAllConnections())
  await ended
  cancelCut()
  endIdleChecks()
}

/** Closes dependencies with a time limit; everything that must survive is already stored. */
export async function closeWithTimeout(close: () => Promise<void>, log: Pick<Log, 'warn'>): Promise<void> {
  let cancel: Cancel | undefined
  const late = new Promise<void>((resolve) => {
    cancel = timers.after(CLOSE_MS, () => {
      log.warn({ waitedMs: CLOSE_MS }, 'a dependency did not close in time; exiting without it')
      resolve()
    })
  })
  await Promise.race([close(), late])
  cancel?.()
}
