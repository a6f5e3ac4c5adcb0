/**
 * Gate in front of a node: calls pass while it is up, wait briefly while it is being restored, and fail after that.
 * Restoring is retried at a bounded rate until the gate is closed.
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import type { Log } from '../../core/base/log.ts'
import { timers } from '../../core/base/timers.ts'
import { Failure } from '../../core/failures/failure.ts'

/**
 * Result of opening.
 * @property isFresh whether the chain is new and empty.
 * @property lost settles when the session is lost.
 */
export interface Opened<Session> {
  readonly session: Session
  readonly isFresh: boolean
  readonly lost?: Promise<void> | undefined
}

/** Access to the session. */
export interface Gate<Session> {
  /** Opens for the first time, without retries. @throws any error of opening. */
  start(): Promise<Session>
  /**
   * Returns the live session, waiting for one if necessary.
   * @throws Failure `provider_unavailable` when none came back in time.
   */
  enter(): Promise<Session>
  /** Declares a session lost. Ignored for any session except the live one. */
  lose(session: Session): void
  onReset(bringUp: () => Promise<void>): void
  close(): void
}

/** How to open, how long calls wait, and the pauses between attempts. */
export interface GateOptions<Session> {
  open(): Promise<Opened<Session>>
  readonly log: Log
  readonly waitMs: number
  readonly firstPauseMs: number
  readonly longestPauseMs: number
}

/** Creates a closed gate. */
export function createGate<Session extends object>(options: GateOptions<Session>): Gate<Session> {
  const { open, log, waitMs, firstPauseMs, longestPauseMs } = options
  const bringUps: (() => Promise<void>)[] = []
  // Calls made by a reset callback must pass before the gate opens for others.
  const insideBringUp = new AsyncLocalStorage<Session>()
  let live: Session | undefined
  let returning: Promise<void> | undefined
  let isClosed = false

  async function reopen(): Promise<void> {
    for (let pauseMs = firstPauseMs; !isClosed; pauseMs = Math.min(pauseMs * 2, longestPauseMs)) {
      await timers.sleep(pauseMs)
      if (isClosed) return
      try {
        const opened = await open()
        const { session, isFresh } = opened
        if (isFresh) await insideBringUp.run(session, bringUpAll)
        admit(opened)
        log.warn({ isFresh, bringUps: bringUps.length }, 'chain is back')
        return
      } catch (error) {
        log.error({ err: error, nextAttemptMs: pauseMs * 2 }, 'chain could not be brought back')
      }
    }
  }

  function admit({ session, lost }: Opened<Session>): void {
    live = session
    void lost?.then(() => lose(session))
  }

  function lose(session: Session): void {
    if (live !== session || isClosed) return
    live = undefined
    log.warn({}, 'the chain is lost')
    returning = reopen()
  }

  async function bringUpAll(): Promise<void> {
    for (const bringUp of bringUps) await bringUp()
  }

  return {
    async start() {
      const opened = await open()
      admit(opened)
      return opened.session
    },
    async enter() {
      const session = insideBringUp.getStore() ?? live
      if (session !== undefined) return session
      if (returning !== undefined && !isClosed)
        await Promise.race([returning, timers.sleep(waitMs, { isIdle: true })])
      if (live !== undefined) return live
      throw new Failure('provider_unavailable', 'The chain does not answer; it is being restored.', {
        retryAfter: 2,
      })
    },
    lose,
    onReset(bringUp) {
      bringUps.push(bringUp)
    },
    close() {
      isClosed = true
      live = undefined
    },
  }
}
