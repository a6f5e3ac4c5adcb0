/**
 * Where spends meet before the database makes them wait: for each other where they are of one account, and for a connection
 * where there are many. What waits is sent together, in one round trip and one commit; what need not wait goes at once.
 */
import { Failure } from '../failures/failure.ts'
import type { Connection, Database } from '../storage/database.ts'
import { reserveSpend, type SpendVerdict } from './reserve.ts'
import { reserveSpends } from './reserve-batch.ts'
import type { SpendRequest } from './spend-request.ts'

const LARGEST_BATCH = 64

/** Calls that may be under way at once. More would only share the server's processors, and take the connections of others. */
const MOST_UNDER_WAY: Readonly<Record<Database['engine'], number>> = { pglite: 1, postgres: 4 }

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
 * A queue on a database. Not for use within a transaction: its statements are their own. Spends of one account are decided in
 * the order in which they came. It keeps nothing but who waits: whatever is not answered when the process ends was decided or
 * not, as with any lost call.
 */
export function createReserveQueue(database: Connection & Pick<Database, 'engine'>): ReserveQueue {
  /** By account, those who wait. An account is in it while it has somebody waiting or under way. */
  const lines = new Map<string, Waiter[]>()
  /** Accounts with somebody waiting and nobody under way, in the order in which they came. */
  const ready = new Set<string>()
  let underWay = 0

  const depart = async (accounts: readonly string[], waiters: readonly Waiter[]): Promise<void> => {
    underWay += 1
    await send(database, waiters)
    underWay -= 1
    for (const account of accounts)
      if (lines.get(account)?.length === 0) lines.delete(account)
      else ready.add(account)
    departAll()
  }

  const departAll = (): void => {
    while (ready.size > 0 && underWay < MOST_UNDER_WAY[database.engine]) {
      const accounts: string[] = []
      const waiters: Waiter[] = []
      for (const account of ready) {
        if (waiters.length === LARGEST_BATCH) break
        waiters.push(...(lines.get(account)?.splice(0, LARGEST_BATCH - waiters.length) ?? []))
        accounts.push(account)
        ready.delete(account)
      }
      void depart(accounts, waiters)
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
        departAll()
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
    for (const [index, verdict] of verdicts.entries()) waiters[index]?.resolve(verdict)
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
