/**
 * One payout: row, provider, outcome. Called with the money already reserved. While the outcome is unknown the money
 * stays held, and the settle-payouts job completes it; the provider sends a payout's id at most once.
 */
import { PAID_RANK } from '../../../policies/banking/payout-states.ts'
import { isStopped, raiseAlarm } from '../../books/alarms/alarms.ts'
import { BANK } from '../../books/spending/sources.ts'
import type { Clock } from '../../core/base/clock.ts'
import type { Log } from '../../core/base/log.ts'
import { Failure } from '../../core/failures/failure.ts'
import type { BankingProvider, PayoutReport } from '../../providers/banking/port.ts'
import type { Address } from '../../providers/chain/port.ts'
import type { Connection, Database } from '../../storage/database.ts'
import { applyPayoutState, type PayoutDependencies, readWalletAddress, rejectPayout } from './apply-payout.ts'
import { findPayout, lockPayout, type Payout, type PayoutTerms, REJECTED } from './payout.ts'
import { findRecipient, registerRecipient, toBankRecipient } from './recipients.ts'
import { findCustomer } from './store.ts'

/** Providers keep idempotency keys for a day; a later request could send a second payout. */
export const RESEND_MS = 20 * 60 * 60_000

export interface SendPayoutDependencies {
  readonly database: Database
  readonly bankingProvider: Pick<
    BankingProvider,
    'registerRecipient' | 'sendPayout' | 'findPayout' | 'awaitsFunds' | 'cancelPayout' | 'deliversOnChain'
  >
  readonly settings: { readonly dataKey: Uint8Array }
  readonly clock: Clock
  readonly log: Log
  readonly oweMint: PayoutDependencies['oweMint']
}

/** A payout after it was sent. @property depositTo address that funds it on the chain; null: none. */
export interface SentPayout {
  readonly payout: Payout
  readonly depositTo: Address | null
}

/**
 * Sends a payout whose row was written. Safe to repeat. If it is unknown whether the provider accepted it, returns its
 * stored state.
 * @throws Failure `payout_rejected` when it will never be sent; its money is available again.
 */
export async function sendPayout(dependencies: SendPayoutDependencies, payout: Payout): Promise<SentPayout> {
  const { clock, log } = dependencies
  try {
    const report = await askProvider(dependencies, payout)
    const isBooked = await bookPayoutReport(dependencies, payout.id, report)
    return { payout: await readPayout(dependencies, payout), depositTo: isBooked ? report.depositTo : null }
  } catch (error) {
    if (!(error instanceof Failure) || error.code !== 'payout_rejected') {
      log.warn({ err: error, payoutId: payout.id }, 'it is unknown whether the provider accepted a payout')
      return { payout, depositTo: null }
    }
    const reason = error.members.reason ?? 'provider_refused'
    await endPayout(dependencies, payout, { reason, at: clock() })
    throw rejectedPayout(await readPayout(dependencies, payout))
  }
}

/** Ends a payout that will never be sent and releases its money, in one transaction. */
export async function endPayout(
  dependencies: Pick<SendPayoutDependencies, 'database' | 'settings'>,
  { id }: Pick<Payout, 'id'>,
  end: { reason: string; at: Date },
): Promise<void> {
  await dependencies.database.transaction(async (database) => {
    const locked = await lockPayout({ ...dependencies, database }, { id })
    if (locked === undefined || locked.rank >= PAID_RANK) return
    // Cash that the provider knows of is the provider's to give back.
    if (locked.place !== BANK || locked.rank === 0) await rejectPayout(database, locked, end)
  })
}

/** Sends a payout's request, with the recipient registered first. */
export async function askProvider(
  dependencies: Pick<SendPayoutDependencies, 'database' | 'bankingProvider' | 'settings'>,
  payout: PayoutTerms,
): Promise<PayoutReport> {
  const { database, bankingProvider } = dependencies
  const { id, accountId, recipientId, place, money, fee, currency, recipientUnits, reference } = payout
  const recipient = await findRecipient(dependencies, { id: recipientId, accountId })
  if (recipient === undefined) throw new Error(`the recipient of ${id} cannot be read`)
  const [providerRecipient, customer] = await Promise.all([
    registerRecipient({ database, bankingProvider }, recipient),
    findCustomer(database, accountId),
  ])
  return bankingProvider.sendPayout({
    id,
    money,
    fee,
    currency,
    recipientUnits,
    recipient: toBankRecipient(recipient, customer),
    providerRecipient,
    reference,
    source: place === BANK ? null : { chain: place, address: await readWalletAddress(database, accountId) },
  })
}

/** Books a report of the provider. @returns false for a payout that an alarm stops: its money must not move. */
export async function bookPayoutReport(
  { database, bankingProvider, settings, log, clock, oweMint }: SendPayoutDependencies,
  id: string,
  { providerId, state, depositTo }: PayoutReport,
): Promise<boolean> {
  const at = clock()
  return database.transaction(async (connection) => {
    const isBookedHere = !bankingProvider.deliversOnChain
    const parts = { database: connection, settings, log, isBookedHere, oweMint }
    const locked = await lockPayout(parts, { id })
    const stopped = { domain: 'banking', objectId: id } as const
    if (locked === undefined || (await isStopped(connection, stopped))) return false
    if (locked.providerId !== null && locked.providerId !== providerId) {
      const alarm = { ...stopped, reason: 'another_payout', reported: { providerId, state }, at }
      await raiseAlarm({ database: connection, log }, alarm)
      return false
    }
    // The provider knows the payout now, even if its state is one that changes nothing.
    await connection.kysely
      .updateTable('payout')
      .set({ provider_id: providerId, ...(depositTo === null ? {} : { deposit_to: depositTo }) })
      .where('id', '=', id)
      .execute()
    await applyPayoutState(parts, locked, { state, providerId, at })
    return true
  })
}

async function readPayout(
  dependencies: { readonly database: Connection; readonly settings: { readonly dataKey: Uint8Array } },
  { decisionId }: Pick<Payout, 'decisionId'>,
): Promise<Payout> {
  const payout = await findPayout(dependencies, { decisionId })
  if (payout === undefined) throw new Error('a payout that was just written cannot be read')
  return payout
}

const hints: Readonly<Record<string, string>> = {
  recipient_rejected: 'Check the bank account with the recipient, and let the owner add it anew.',
  not_funded: 'Send the payout again, with a new idempotency key.',
  ambiguous_deposit:
    'Another payout of this amount waits for its money at the same address: send this one later, or another amount.',
}

/** Error of a payout that was not accepted, the same for every call. */
export function rejectedPayout({ id, reason }: Pick<Payout, 'id' | 'reason'>): Failure {
  return new Failure('payout_rejected', `Payout ${id} was not sent: ${reason ?? REJECTED}.`, {
    reason: reason ?? REJECTED,
    isFinal: true,
    hint:
      hints[reason ?? ''] ??
      'Nothing left the account. Change the payout, and send it with a new idempotency key.',
  })
}

/**
 * Finds the payout of a decision, for a repeated call; null while it is about to be written.
 * @throws Failure `payout_rejected` when it was never sent.
 */
export async function findRepeatedPayout(
  dependencies: { readonly database: Connection; readonly settings: { readonly dataKey: Uint8Array } },
  decisionId: string,
): Promise<Payout | null> {
  const payout = await findPayout(dependencies, { decisionId })
  if (payout?.state === REJECTED) throw rejectedPayout(payout)
  if (payout !== undefined) return payout
  const reservation = await dependencies.database.kysely
    .selectFrom('reservation')
    .select('status')
    .where('decision_id', '=', decisionId)
    .executeTakeFirst()
  if (reservation?.status !== 'released') return null
  throw new Failure('payout_rejected', 'The payout was never sent.', { reason: 'never_sent', isFinal: true })
}
