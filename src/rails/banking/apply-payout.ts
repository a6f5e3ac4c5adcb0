/** Applies reports on payouts: their money has left, or is back. */
import { ENDED_RANK, PAID_RANK, payoutRank, payoutStatus } from '../../../policies/banking/payout-states.ts'
import { available, external } from '../../books/ledger/accounts.ts'
import { post } from '../../books/ledger/post.ts'
import { releaseSpend } from '../../books/spending/release.ts'
import { settleSpend } from '../../books/spending/settle.ts'
import { BANK, isStablecoin } from '../../books/spending/sources.ts'
import type { Log } from '../../core/base/log.ts'
import { Failure } from '../../core/failures/failure.ts'
import type { BankingEvent } from '../../providers/banking/port.ts'
import type { Address, Mint } from '../../providers/chain/port.ts'
import type { Connection } from '../../storage/database.ts'
import { parseEventAmount, requireSame, requireUnstopped } from './judge-event.ts'
import { lockPayout, type Payout, REJECTED } from './payout.ts'
import { endPrepared } from './prepared-payout.ts'

/**
 * Dependencies within a transaction.
 * @property isBookedHere false when the chain watcher books what comes back on the chain.
 * @property oweMint records tokens that came back and must be minted, in the transaction that books them.
 */
export interface PayoutDependencies {
  readonly database: Connection
  readonly settings: { readonly dataKey: Uint8Array }
  readonly log: Log
  readonly isBookedHere: boolean
  readonly oweMint: (database: Connection, accountId: string, mint: Mint) => Promise<unknown>
}

/** Applies an event of a payout. Unknown payouts are ignored: the job reads their state when they have been answered. */
export async function applyPayoutEvent(
  dependencies: PayoutDependencies,
  event: BankingEvent,
  at: Date,
): Promise<void> {
  const { objectId, reference } = event
  const payout =
    (await lockPayout(dependencies, { providerId: objectId })) ??
    (reference === null ? undefined : await lockPayout(dependencies, { id: reference }))
  if (payout === undefined && payoutRank(event.state) === ENDED_RANK)
    await endPrepared(dependencies.database, objectId)
  if (payout === undefined || payoutRank(event.state) <= payout.rank) return
  await requireUnstopped(dependencies.database, payout.id)
  if (payout.providerId !== null && payout.providerId !== objectId)
    throw new Failure('invalid_request', 'event_object_id: is another payout', { reason: 'another_payout' })
  if (event.amount !== null) requireSame(parseEventAmount(event, payout.money.asset), payout.money.units)
  await applyPayoutState(dependencies, payout, { state: event.state, providerId: objectId, at })
}

/**
 * Advances a payout, whose row the caller has locked, and moves its money. A state of no higher rank changes nothing.
 * @throws Failure `conflict` while a transfer that funds the payout has an unknown outcome.
 */
export async function applyPayoutState(
  dependencies: PayoutDependencies,
  payout: Payout,
  { state, providerId, at }: { state: string; providerId: string; at: Date },
): Promise<void> {
  const rank = payoutRank(state)
  if (rank <= payout.rank) return
  const { database, log } = dependencies
  const { id, decisionId, place } = payout
  if (state === 'refund_failed') log.error({ payoutId: id }, 'the bank could not refund a payout')
  // Locks follow the order of src/storage/sql/README.md: the payout, its reservation, the account, balances.
  if (rank === PAID_RANK && place === BANK)
    await settleSpend(database, { decisionId, destination: external(BANK), at })
  if (rank === ENDED_RANK) await giveBack(dependencies, payout, at)
  await updatePayout(database, payout, { state, providerId, at })
}

/** Ends a payout that will never be sent, and releases its money. The caller has locked its row. */
export async function rejectPayout(
  database: Connection,
  payout: Payout,
  { reason, at }: { reason: string; at: Date },
): Promise<void> {
  await releaseSpend(database, { decisionId: payout.decisionId, at })
  await database.kysely
    .updateTable('payout')
    .set({ state: REJECTED, rank: ENDED_RANK, status: 'failed', reason, updated_at: at })
    .where('id', '=', payout.id)
    .where('rank', '<', ENDED_RANK)
    .execute()
}

async function updatePayout(
  database: Connection,
  { id, status }: Payout,
  { state, providerId, at }: { state: string; providerId: string; at: Date },
): Promise<void> {
  await database.kysely
    .updateTable('payout')
    .set({
      state,
      rank: payoutRank(state),
      status: payoutStatus(state, status),
      provider_id: providerId,
      reason: payoutRank(state) === ENDED_RANK ? state : null,
      updated_at: at,
    })
    .where('id', '=', id)
    .execute()
}

/** Releases what is held, or books what had left and came back. */
async function giveBack(
  { database, isBookedHere, oweMint }: PayoutDependencies,
  { id, decisionId, accountId, place, money }: Payout,
  at: Date,
): Promise<void> {
  if (place !== BANK) await requireKnownFunding(database, decisionId)
  if ((await releaseSpend(database, { decisionId, at })) !== 'already_settled') return
  // A provider that returns stablecoins on the chain is booked when they arrive there.
  if (place !== BANK && !isBookedHere) return
  await post(database, {
    id: `payout:${id}:returned`,
    kind: 'payout_return',
    reference: id,
    at,
    postings: [{ source: external(place), destination: available(accountId, place), money }],
  })
  if (place === BANK || !isStablecoin(money.asset)) return
  const to = await readWalletAddress(database, accountId)
  await oweMint(database, accountId, { token: money.asset, to, units: money.units })
}

/** @throws Failure `conflict` while it is unknown whether the chain executed the transfer that funds a payout. */
async function requireKnownFunding(database: Connection, decisionId: string): Promise<void> {
  const open = await database.kysely
    .selectFrom('transfer')
    .select('id')
    .where('decision_id', '=', decisionId)
    .where('funding_id', 'is', null)
    .where('state', 'not in', ['confirmed', 'failed'])
    .executeTakeFirst()
  if (open !== undefined)
    throw new Failure('conflict', `The transfer ${open.id} that funds the payout is not confirmed yet.`)
}

/** Address of an account's wallet. */
export async function readWalletAddress(database: Connection, accountId: string): Promise<Address> {
  const { address } = await database.kysely
    .selectFrom('wallet')
    .select('address')
    .where('account_id', '=', accountId)
    .executeTakeFirstOrThrow()
  return `0x${address.slice(2)}`
}
