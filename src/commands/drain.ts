/** How a gateway ends once it is told to: within ten seconds, which is what those who tell it commonly grant. */
import type { Server, ServerResponse } from 'node:http'
import type { Log } from '../base/log.ts'

/** How long requests under way may take to finish. */
const DRAIN_MS = 8_000
/** How long the parts may then take to close. */
const CLOSE_MS = 1_500

const IDLE_LOOK_MS = 100

const signals = ['SIGTERM', 'SIGINT'] as const

/** The first signal to end. A second one, whichever, ends the process at once: nobody listens to it any more. */
export function endSignal(): Promise<string> {
  return new Promise((resolve) => {
    const end = (signal: NodeJS.Signals) => {
      for (const each of signals) process.off(each, end)
      resolve(signal)
    }
    for (const signal of signals) process.on(signal, end)
  })
}

/** Takes no new connections, lets requests under way finish, and cuts what is left after {@link DRAIN_MS}. */
export async function drain(server: Server): Promise<void> {
  const ended = new Promise<void>((resolve) => server.close(() => resolve()))
  // A client that asks on and on over one connection would be served to the last moment.
  server.prependListener('request', (_request, response: ServerResponse) => {
    response.shouldKeepAlive = false
  })
  server.closeIdleConnections()
  // A connection whose request ends only now would be kept for the next one.
  const idle = setInterval(() => server.closeIdleConnections(), IDLE_LOOK_MS)
  const cut = setTimeout(() => server.closeAllConnections(), DRAIN_MS)
  await ended
  clearTimeout(cut)
  clearInterval(idle)
}

/** Closes the parts, and waits for none that hangs: whatever must survive was written down before it was begun. */
export async function closed(close: () => Promise<void>, log: Pick<Log, 'warn'>): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<void>((resolve) => {
    timer = setTimeout(() => {
      log.warn({ waitedMs: CLOSE_MS }, 'a part did not close in time; the process ends without it')
      resolve()
    }, CLOSE_MS)
  })
  await Promise.race([close(), late])
  clearTimeout(timer)
}
