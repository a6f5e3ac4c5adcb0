/**
 * The ways to the money of a payout: it is recalled before it is sent; after that, its return is asked for where the provider takes such
 * requests. What is back is what the books show: the hold was released, or the return was posted.
 */

import { sql } from 'kysely'
import type { Clock } from '../../core/base/clock.ts'
import type { BankingProvider } from '../../providers/banking/port.ts'
import { type Connection, callForRow, type Database, type Statement } from '../../storage/database.ts'
import { findStep, type Progress, type Recourse, recordStep } from './store.ts'

export interface BankRecourseParts {
  readonly database: Database
  readonly clock: Clock
  readonly bankingProvider: Pick<
    BankingProvider,
    'findPayout' | 'awaitsFunds' | 'cancelPayout' | 'requestReturn'
  >
}

const action = 'bank_recall'

const note = ({ database, clock }: BankRecourseParts, recourse: Recourse, progress: Progress) =>
  recordStep(database, recourse, { progress, at: clock() })

function findPayoutRow({ kysely }: Connection, id: string) {
  return kysely
    .selectFrom('payout')
    .innerJoin('reservation', 'reservation.decision_id', 'payout.decision_id')
    .leftJoin('transfer', (join) =>
      join.onRef('transfer.decision_id', '=', 'payout.decision_id').on('transfer.funding_id', 'is', null),
    )
    .leftJoin('posting', (join) =>
      join
        .on('posting.transaction_id', '=', sql<string>`'payout:' || payout.id || ':returned'`)
        .on('posting.ordinal', '=', 1),
    )
    .select([
      'payout.status',
      'payout.provider_id as providerId',
      'reservation.status as hold',
      'transfer.id as funding',
      'posting.transaction_id as returned',
    ])
    .where('payout.id', '=', id)
    .executeTakeFirstOrThrow()
}

type PayoutFacts = Awaited<ReturnType<typeof findPayoutRow>>

/** Goes on with the recourse of a payout as far as it can now. @returns the recourse afterwards. */
export async function advancePayout(parts: BankRecourseParts, recourse: Recourse): Promise<Recourse> {
  const payout = await findPayoutRow(parts.database, recourse.object_id)
  if (payout.hold === 'released' || payout.returned !== null) return endReturned(parts, recourse)
  if (parts.clock() >= recourse.deadline)
    return note(parts, recourse, {
      action,
      outcome: 'failed',
      route: action,
      evidence: { why: 'The money did not come back in time.' },
      end: { status: 'expired' },
    })
  return payout.status === 'pending' ? recall(parts, recourse, payout) : askForReturn(parts, recourse, payout)
}

const refunding: Statement = {
  name: 'spend_refund',
  text: 'select usd_micros from spend_refund($1, $2, $3)',
}

/** All of it is back. A budget that had counted it gets it again, unless the owner wants otherwise. */
async function endReturned({ database, clock }: BankRecourseParts, recourse: Recourse): Promise<Recourse> {
  return database.transaction(async (connection) => {
    const current = await connection.kysely
      .selectFrom('recourse')
      .innerJoin('account', 'account.id', 'recourse.account_id')
      .selectAll('recourse')
      .select('account.refunds_refill as refills')
      .where('recourse.id', '=', recourse.id)
      .forUpdate('recourse')
      .executeTakeFirstOrThrow()
    const { refills, ...locked } = current
    if (locked.status !== 'open') return locked
    if (refills && locked.decision_id !== null)
      await callForRow(connection, refunding, [locked.decision_id, locked.claimed, locked.claimed])
    return recordStep(connection, locked, {
      progress: { action: 'refund', outcome: 'done', end: { status: 'recovered', isAllBack: true } },
      at: clock(),
    })
  })
}

/** Cancels a payout that the provider has not got the money of. Afterwards its state tells what became of it. */
async function recall(parts: BankRecourseParts, recourse: Recourse, payout: PayoutFacts): Promise<Recourse> {
  const { bankingProvider, clock } = parts
  if (findStep(recourse, action) !== undefined) return recourse
  const { providerId, funding } = payout
  // Money on its way to the bank would arrive at a payout that takes none any more.
  if (providerId === null || funding !== null) return recourse
  const { state } = await bankingProvider.findPayout(providerId, clock())
  if (!bankingProvider.awaitsFunds(state)) return recourse
  await bankingProvider.cancelPayout(providerId)
  return note(parts, recourse, { action, outcome: 'waiting', route: action, evidence: { state } })
}

async function askForReturn(
  parts: BankRecourseParts,
  recourse: Recourse,
  { providerId }: PayoutFacts,
): Promise<Recourse> {
  const { requestReturn } = parts.bankingProvider
  const step = findStep(recourse, action)
  if (step?.evidence?.return !== undefined) return recourse
  const raced =
    step?.outcome === 'waiting' ? await note(parts, recourse, { action, outcome: 'raced' }) : recourse
  const isAsked = requestReturn !== null && providerId !== null && (await requestReturn(providerId))
  if (!isAsked)
    return note(parts, raced, {
      action,
      outcome: 'refused',
      route: action,
      evidence: {
        why: 'It has been sent, and the banking provider takes no requests to return it: only the recipient, or its bank, can send it back.',
      },
      end: { status: 'impossible' },
    })
  return note(parts, raced, {
    action,
    outcome: 'waiting',
    route: action,
    evidence: { return: 'requested' },
  })
}
