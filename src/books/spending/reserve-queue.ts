/**
 * Queues spends before the database: spends of one account wait for each other, and all wait for a free connection.
 * Queued spends share one round trip and one commit; others are sent immediately.
 */
import { createBatches } from '../../core/base/batches.ts'
import type { Connection, Database } from '../../storage/database.ts'
import { reserveSpends, type SpendVerdict } from './reserve.ts'
import type { SpendRequest } from './spend-request.ts'

/** Decides a spend; see {@link SpendVerdict}. */
export type Reserve = (request: SpendRequest) => Promise<SpendVerdict>

/** Maximum concurrent calls. More would only share the server's processors and take connections from other work. */
const MAX_CONCURRENT: Readonly<Record<Database['engine'], number>> = { pglite: 1, postgres: 4 }

/**
 * Creates a queue on a database. Not for use within a transaction, because it runs its own statements. Spends of one
 * account are decided in order of arrival. The queue holds only pending calls; a call unanswered when the process
 * ends may or may not have been decided; a repeat with its idempotency key returns the outcome.
 */
export function createReserveQueue(database: Connection & Pick<Database, 'engine'>): Reserve {
  return createBatches({
    concurrent: MAX_CONCURRENT[database.engine],
    isBlocking: database.engine === 'pglite',
    lineOf: ({ accountId }) => accountId,
    send: (requests) => reserveSpends(database, requests),
  })
}
