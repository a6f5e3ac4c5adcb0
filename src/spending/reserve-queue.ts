/**
 * Where spends of one account meet before the database does it for them. Spends of an account wait for each other there in
 * any case; those that come while one is under way are sent together when it returns, in one round trip and one commit.
 */
import { Failure } from '../failure.ts'
import type { Connection } from '../storage/database.ts'
import { reserveSpend, type SpendRequest, type SpendVerdict } from './reserve.ts'
import { reserveSpends } from './reserve-batch.ts'

const LARGEST_BATCH = 64

/** Reserves spends. @see reserveSpend for what it answers. */
export interface ReserveQueue {
  readonly reserve: (request: SpendRequest) => Promise<SpendVerdict>
}

interface Waiter {
  readonly request: SpendRequest
  readonly resolve: (verdict: SpendVerdict) => void
  readonly reject: (error: unknown) => void
}

/**
 * A queue on a database. Not for use within a transaction: its statements are their own.
 * It keeps nothing but who waits: whatever is not answered when the process ends was decided or not, as with any lost call.
 */
export function createReserveQueue(database: Connection): ReserveQueue {
  /** By account, those who wait; an account is in it while one of its calls is under way. */
  const waiting = new Map<string, Waiter[]>()

  const drain = async (accountId: string, waiters: Waiter[]): Promise<void> => {
    while (waiters.length > 0) await send(database, waiters.splice(0, LARGEST_BATCH))
    waiting.delete(accountId)
  }

  return {
    reserve: (request) =>
      new Promise((resolve, reject) => {
        const waiter = { request, resolve, reject }
        const waiters = waiting.get(request.accountId)
        if (waiters !== undefined) {
          waiters.push(waiter)
          return
        }
        const alone = [waiter]
        waiting.set(request.accountId, alone)
        void drain(request.accountId, alone)
      }),
  }
}

/** Sends what has come together and tells everyone what became of theirs. Never rejects. */
async function send(database: Connection, waiters: readonly Waiter[]): Promise<void> {
  const [first] = waiters
  if (first !== undefined && waiters.length === 1) return sendAlone(database, first)
  try {
    const verdicts = await reserveSpends(
      database,
      waiters.map(({ request }) => request),
    )
    for (const [index, { resolve, reject }] of waiters.entries()) {
      const verdict = verdicts[index]
      if (verdict === undefined) reject(new Error('a batch answered too few verdicts'))
      else resolve(verdict)
    }
  } catch (error) {
    // A database that is lost or too busy may have decided, and is not asked 64 times more: a repeat with the same
    // idempotency key finds out. Any other error rolled the whole batch back: then each is judged on its own.
    if (error instanceof Failure) for (const { reject } of waiters) reject(error)
    else for (const waiter of waiters) await sendAlone(database, waiter)
  }
}

async function sendAlone(database: Connection, { request, resolve, reject }: Waiter): Promise<void> {
  try {
    resolve(await reserveSpend(database, request))
  } catch (error) {
    reject(error)
  }
}
