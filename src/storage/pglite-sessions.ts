/** Shares PGlite's single session: callers wait in a queue. */
import type { PGlite } from '@electric-sql/pglite'
import { type Cancel, timers } from '../core/base/timers.ts'
import { Failure } from '../core/failures/failure.ts'
import { createStatements } from './pglite-statements.ts'
import { changesRows, type SessionPool } from './session-pool.ts'
import { asUnavailable } from './unavailable.ts'

const INT8 = 20
const DATE = 1082

/** A longer wait most likely means that a transaction waits for the session that it holds itself. */
const MAX_WAIT_MS = 10_000

/** Column types that the two engines would otherwise parse differently. */
const parsers = { [INT8]: BigInt, [DATE]: (text: string) => text }

/** Statements without parameters that are prepared too: every transaction runs two of them. */
const transactionControl = new Set(['begin', 'commit', 'rollback'])

/** `end` waits for queued callers, then closes the instance. */
export function createSessionPool(pglite: PGlite): SessionPool {
  const execute = createStatements(pglite, { ...pglite.parsers, ...parsers })
  let last = Promise.resolve()
  let turns = 0
  const takeTurn = async (): Promise<() => void> => {
    const before = last
    let next = () => {}
    last = new Promise((resolve) => {
      next = resolve
    })
    const endTurn = () => {
      turns -= 1
      next()
    }
    turns += 1
    // Uncontended callers need no timer.
    if (turns > 1) await waitForTurn(before, endTurn)
    return endTurn
  }
  return {
    acquire: async () => {
      const endTurn = await takeTurn()
      return {
        query: async <Row>(text: string, parameters: readonly unknown[]) => {
          const result = await (parameters.length === 0 && !transactionControl.has(text)
            ? pglite.exec(text, { parsers }).then((results) => results.at(-1))
            : execute(text, parameters)
          ).catch((error: unknown) => {
            throw asUnavailable(error)
          })
          const command = result?.command ?? ''
          return {
            // The caller declares the row type of its statement; PGlite does not check it.
            rows: (result?.rows ?? []) as Row[],
            command,
            affected: changesRows(command) ? BigInt(result?.rowCount ?? 0) : undefined,
          }
        },
        release: () => endTurn(),
      }
    },
    count: () => ({ busy: Math.min(turns, 1), idle: turns === 0 ? 1 : 0, waiting: Math.max(0, turns - 1) }),
    end: async () => {
      const endTurn = await takeTurn()
      try {
        if (!pglite.closed) await pglite.close()
      } finally {
        endTurn()
      }
    },
  }
}

/** Waits for a turn with a time limit. A caller that gives up passes its turn on when it comes. */
async function waitForTurn(turn: Promise<void>, endTurn: () => void): Promise<void> {
  let cancel: Cancel | undefined
  const tooLate = new Promise<never>((_resolve, reject) => {
    cancel = timers.after(MAX_WAIT_MS, () => {
      const detail = `The embedded database was busy for ${MAX_WAIT_MS / 1_000} seconds.`
      const hint = 'Inside a transaction, use only the connection that it provides.'
      reject(new Failure('provider_unavailable', detail, { retryAfter: 1 }, { cause: new Error(hint) }))
    })
  })
  try {
    await Promise.race([turn, tooLate])
  } catch (error) {
    void turn.then(endTurn)
    throw error
  } finally {
    cancel?.()
  }
}
