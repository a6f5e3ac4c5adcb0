/**
 * Money of another chain that moves to a payment first, under the payment's decision. Its burn has a reservation of its own; what
 * arrives is held for the payment in the transaction that books the mint. A payment that is not made leaves the money where it is then.
 */
import type { LedgerAccount } from '../../books/ledger/accounts.ts'
import { timers } from '../../core/base/timers.ts'
import { type Connection, callForRow, type Statement } from '../../storage/database.ts'
import type { TransferFailureCode } from '../wallets/store.ts'

/** How long a payment waits for its money; by the calendar. */
export const FUNDING_WAIT_MS = 30 * 60_000

const arriving: Statement = {
  name: 'funding_arrive',
  text: 'select funding_arrive($1, $2, $3, $4, $5, $6) as units',
}

/**
 * Holds what has arrived for the payment that waits for it, and lets it be sent. Call it in the transaction that books the arrival.
 * @param source account of what is on its way. @returns what is held of it; 0 where no payment waits any more.
 */
export async function holdForPayment(
  connection: Connection,
  {
    fundingId,
    swapId,
    source,
    units,
    at,
  }: {
    readonly fundingId: string
    readonly swapId: string
    readonly source: LedgerAccount
    readonly units: bigint
    readonly at: Date
  },
): Promise<bigint> {
  const row = await callForRow<{ readonly units: bigint }>(connection, arriving, [
    fundingId,
    `fund:${fundingId}`,
    swapId,
    source,
    units,
    at,
  ])
  return row.units
}

const failing: Statement = { name: 'funding_fail', text: 'select funding_fail($1, $2, $3, $4) as ended' }

/** Ends a payment whose money does not arrive, once. @returns whether it waited still. */
export async function failFunding(
  connection: Connection,
  {
    fundingId,
    failure,
    code,
    at,
  }: {
    readonly fundingId: string
    readonly failure: string
    readonly code: TransferFailureCode
    readonly at: Date
  },
): Promise<boolean> {
  const row = await callForRow<{ readonly ended: boolean }>(connection, failing, [
    fundingId,
    failure,
    code,
    at,
  ])
  return row.ended
}

/** How far a payment's money from another chain has come. */
export interface FundingProgress {
  readonly state: 'moving' | 'arrived' | 'failed'
  readonly failure: string | null
  readonly updatedAt: Date
}

/** @returns undefined for a payment that takes no money of another chain. */
export async function findFunding(
  { kysely }: Connection,
  decisionId: string,
): Promise<FundingProgress | undefined> {
  const row = await kysely
    .selectFrom('funding')
    .select(['state', 'failure', 'updated_at'])
    .where('decision_id', '=', decisionId)
    .executeTakeFirst()
  return row === undefined ? undefined : { state: row.state, failure: row.failure, updatedAt: row.updated_at }
}

/** How long a call waits for money of another chain; longer than the fast way takes. */
const CALL_WAIT_MS = 20_000
const POLL_MS = 100

/**
 * Waits for the money of a payment. @returns how far it has come; `moving` where it takes longer than a call waits; undefined as
 * {@link findFunding}.
 */
export async function awaitFunding(
  connection: Connection,
  decisionId: string,
): Promise<FundingProgress | undefined> {
  const until = timers.monotonic() + CALL_WAIT_MS
  for (;;) {
    const found = await findFunding(connection, decisionId)
    if (found?.state !== 'moving' || timers.monotonic() > until) return found
    await timers.sleep(POLL_MS)
  }
}

/** Why a payment was not made whose money was not moved. @param failure of the burn. */
export function explainLostMove(failure: string): string {
  return `its money could not be moved from the other chain: ${failure}`
}

/** A funding whose money will not arrive for its payment. @property burn why its burn failed; null: it has not, but takes too long. */
export interface LostFunding {
  readonly fundingId: string
  readonly decisionId: string
  readonly burn: { readonly failure: string; readonly code: TransferFailureCode } | null
}

/** Finds fundings whose order has failed, or that have taken too long. @param calendar moment by which they are judged. */
export async function findLostFundings(
  { kysely }: Connection,
  { calendar, limit }: { readonly calendar: Date; readonly limit: number },
): Promise<LostFunding[]> {
  const rows = await kysely
    .selectFrom('funding')
    .innerJoin('swap_order', 'swap_order.funding_id', 'funding.id')
    .leftJoin('transfer', 'transfer.funding_id', 'funding.id')
    .select([
      'funding.id',
      'funding.decision_id',
      'swap_order.state',
      'swap_order.failure',
      'transfer.failure_code',
    ])
    .where('funding.state', '=', 'moving')
    .where((where) =>
      where.or([where('swap_order.state', '=', 'failed'), where('funding.wait_until', '<=', calendar)]),
    )
    .orderBy('funding.wait_until')
    .limit(limit)
    .execute()
  return rows.map(({ id, decision_id: decisionId, state, failure, failure_code: code }) => ({
    fundingId: id,
    decisionId,
    burn:
      state === 'failed'
        ? { failure: failure ?? 'it was not made', code: code ?? 'provider_unavailable' }
        : null,
  }))
}
