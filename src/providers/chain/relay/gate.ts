/**
 * The gate before a node: calls go through while it lives, wait a moment while it is brought back, and are refused after
 * that. It goes on trying, at a bounded rate, for as long as it is not closed.
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Log } from '../../../base/log.ts'
import { Failure } from '../../../failures/failure.ts'

/** What opening brings. @property isFresh whether the chain is a new, empty one. @property lost settles with its loss. */
export interface Opened<Session> {
  readonly session: Session
  readonly isFresh: boolean
  readonly lost?: Promise<void> | undefined
}

/** Where calls ask for the session. */
export interface Gate<Session> {
  /** Opens for the first time. @throws whatever opening throws: a start is never retried. */
  start(): Promise<Session>
  /** The live session; waits for one. @throws Failure `provider_unavailable` where none came back in time. */
  enter(): Promise<Session>
  /** Says that a session is lost. Said of another one than the live one, it does nothing. */
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

/** A gate that is still shut. */
export function createGate<Session extends object>(options: GateOptions<Session>): Gate<Session> {
  const { open, log, waitMs, firstPauseMs, longestPauseMs } = options
  const bringUps: (() => Promise<void>)[] = []
  // What a reset callback itself sends must pass before the gate is open to anybody else.
  const insideBringUp = new AsyncLocalStorage<Session>()
  let live: Session | undefined
  let returning: Promise<void> | undefined
  let isClosed = false

  async function reopen(): Promise<void> {
    for (let pauseMs = firstPauseMs; !isClosed; pauseMs = Math.min(pauseMs * 2, longestPauseMs)) {
      await sleep(pauseMs)
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
    log.warn({}, 'chain is lost')
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
        await Promise.race([returning, sleep(waitMs, undefined, { ref: false })])
      if (live !== undefined) return live
      throw new Failure('provider_unavailable', 'The chain does not answer; it is being brought back.', {
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
