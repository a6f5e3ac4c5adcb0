/**
 * Queues spends before the database: spends of one account wait for each other, and all wait for a free connection.
 * Queued spends share one round trip and one commit; others are sent immediately.
 */
import { Failure } from '../failures/failure.ts'
import type { Connection, Database } from '../storage/database.ts'
import { reserveSpend, type SpendVerdict } from './reserve.ts'
import { reserveSpends } from './reserve-batch.ts'
import type { SpendRequest } from './spend-request.ts'

const MAX_BATCH = 64

/** Maximum concurrent calls. More would only share the server's processors and take connections from other work. */
const MAX_CONCURRENT: Readonly<Record<Database['engine'], number>> = { pglite: 1, postgres: 4 }

/** Reserves spends; see {@link reserveSpend} for the verdicts. */
export interface ReserveQueue {
  readonly reserve: (request: SpendRequest) => Promise<SpendVerdict>
}

interface Waiter {
  readonly request: SpendRequest
  readonly resolve: (verdict: SpendVerdict) => void
  readonly reject: (error: unknown) => void
}

/**
 * Creates a queue on a database. Not for use within a transaction, because it runs its own statements. Spends of one
 * account are decided in order of arrival. The queue holds only pending calls; a call unanswered when the process
 * ends may or may not have been decided.
 */
export function createReserveQueue(database: Connection & Pick<Database, 'engine'>): ReserveQueue {
  /** Waiting calls by account. An account has an entry while any of its calls is waiting or running. */
  const lines = new Map<string, Waiter[]>()
  /** Accounts with waiting calls and none running, in order of arrival. */
  const ready = new Set<string>()
  let running = 0

  const runBatch = async (accounts: readonly string[], waiters: readonly Waiter[]): Promise<void> => {
    running += 1
    await send(database, waiters)
    running -= 1
    for (const account of accounts)
      if (lines.get(account)?.length === 0) lines.delete(account)
      else ready.add(account)
    runReady()
  }

  const runReady = (): void => {
    while (ready.size > 0 && running < MAX_CONCURRENT[database.engine]) {
      const accounts: string[] = []
      const waiters: Waiter[] = []
      for (const account of ready) {
        if (waiters.length === MAX_BATCH) break
        waiters.push(...(lines.get(account)?.splice(0, MAX_BATCH - waiters.length) ?? []))
        accounts.push(account)
        ready.delete(account)
      }
      void runBatch(accounts, waiters)
    }
  }

  return {
    reserve: (request) =>
      new Promise((resolve, reject) => {
        const { accountId } = request
        const line = lines.get(accountId)
        const waiter = { request, resolve, reject }
        if (line !== undefined) line.push(waiter)
        else {
          lines.set(accountId, [waiter])
          ready.add(accountId)
        }
        runReady()
      }),
  }
}

/** Sends a batch and resolves each waiter with its verdict. Never rejects. */
async function send(database: Connection, waiters: readonly Waiter[]): Promise<void> {
  const [first] = waiters
  if (first !== undefined && waiters.length === 1) return sendAlone(database, first)
  try {
    const verdicts = await reserveSpends(
      database,
      waiters.map(({ request }) => request),
    )
    for (const [index, verdict] of verdicts.entries()) waiters[index]?.resolve(verdict)
  } catch (error) {
    // After a lost connection or overload the batch may have been decided, so it is not retried here; a repeat with
    // the same idempotency key returns the outcome. Any other error rolled back the whole batch: its halves are tried,
    // one after the other, until the spend that raised is alone.
    if (error instanceof Failure) for (const { reject } of waiters) reject(error)
    else {
      const half = Math.ceil(waiters.length / 2)
      await send(database, waiters.slice(0, half))
      await send(database, waiters.slice(half))
    }
  }
}

async function sendAlone(database: Connection, { request, resolve, reject }: Waiter): Promise<void> {
  try {
    resolve(await reserveSpend(database, request))
  } catch (error) {
    reject(error)
  }
}
