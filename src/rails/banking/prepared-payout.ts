/**
 * Payouts prepared at the provider before their owner signs, because only its answer names the address that the signed
 * transfer pays. One that is not signed is canceled there; it never held or moved money.
 */
import type { Selectable } from 'kysely'
import { z } from 'zod'
import { seal, unseal } from '../../core/base/seal.ts'
import { payoutCurrencies } from '../../providers/banking/port.ts'
import type { Address } from '../../providers/chain/port.ts'
import type { Connection } from '../../storage/database.ts'
import type { PreparedPayoutTable } from '../../storage/schema.ts'
import { type PayoutTerms, parseAsset, REFERENCE_PURPOSE } from './payout.ts'

interface Keeping {
  readonly database: Connection
  readonly settings: { readonly dataKey: Uint8Array }
}

/** A prepared payout as stored; its id is that of the payout that it becomes. */
export interface PreparedPayout extends PayoutTerms {
  readonly providerId: string | null
  readonly depositTo: Address | null
  readonly status: PreparedPayoutTable['status']
}

/** A prepared payout that the provider awaits money for. */
export type SignablePayout = PreparedPayout & { readonly providerId: string; readonly depositTo: Address }

/** Finds an account's prepared payout. */
export async function findPreparedPayout(
  keeping: Keeping,
  { id, accountId }: { id: string; accountId: string },
): Promise<PreparedPayout | undefined> {
  const row = await keeping.database.kysely
    .selectFrom('prepared_payout')
    .selectAll()
    .where('id', '=', id)
    .where('account_id', '=', accountId)
    .executeTakeFirst()
  return row === undefined ? undefined : parsePreparedPayout(keeping, row)
}

/** Ends a prepared payout that the provider reports as ended. */
export async function endPrepared({ kysely }: Connection, providerId: string): Promise<void> {
  await kysely
    .updateTable('prepared_payout')
    .set({ status: 'ended' })
    .where('provider_id', '=', providerId)
    .where('status', 'in', ['awaiting', 'ending'])
    .execute()
}

/** Lists an account's payouts that can still be signed, newest first. */
export async function unsignedPayouts(keeping: Keeping, accountId: string): Promise<PreparedPayout[]> {
  const rows = await keeping.database.kysely
    .selectFrom('prepared_payout')
    .selectAll()
    .where('account_id', '=', accountId)
    .where('status', 'in', ['new', 'awaiting'])
    .orderBy('id', 'desc')
    .execute()
  return rows.map((row) => parsePreparedPayout(keeping, row))
}

/** Renews the terms of a payout that is about to be signed, and locks its row. @returns false when it has ended. */
export async function renewPrepared(
  { kysely }: Connection,
  { id, fee, recipientUnits, rate, eta, createdAt: at }: PayoutTerms,
): Promise<boolean> {
  const row = await kysely
    .updateTable('prepared_payout')
    .set({ fee_units: fee, recipient_units: recipientUnits, rate, eta, tried_at: at })
    .where('id', '=', id)
    .where('status', '=', 'awaiting')
    .returning('id')
    .executeTakeFirst()
  return row !== undefined
}

/** Advances a prepared payout. @returns false when it was in none of the states before. */
export async function advancePrepared(
  { kysely }: Connection,
  id: string,
  { from, to }: { from: readonly PreparedPayout['status'][]; to: PreparedPayout['status'] },
): Promise<boolean> {
  const row = await kysely
    .updateTable('prepared_payout')
    .set({ status: to })
    .where('id', '=', id)
    .where('status', 'in', from)
    .returning('id')
    .executeTakeFirst()
  return row !== undefined
}

/** Stores the provider's answer, once. */
export async function answerPrepared(
  { kysely }: Connection,
  { id, providerId, depositTo }: { id: string; providerId: string; depositTo: Address },
): Promise<void> {
  await kysely
    .updateTable('prepared_payout')
    .set({ provider_id: providerId, deposit_to: depositTo, status: 'awaiting' })
    .where('id', '=', id)
    .where('status', '=', 'new')
    .execute()
}

/** Claims unsigned payouts untouched since a moment; concurrent processes claim different ones. */
export async function claimUnsigned(
  keeping: Keeping,
  { before, at, limit }: { before: Date; at: Date; limit: number },
): Promise<PreparedPayout[]> {
  const rows = await keeping.database.kysely
    .updateTable('prepared_payout')
    .set({ tried_at: at })
    .where('id', 'in', (query) =>
      query
        .selectFrom('prepared_payout')
        .select('id')
        .where('status', 'in', ['new', 'awaiting', 'ending'])
        .where('tried_at', '<', before)
        .orderBy('tried_at')
        .limit(limit)
        .forUpdate()
        .skipLocked(),
    )
    .returningAll()
    .execute()
  return rows.map((row) => parsePreparedPayout(keeping, row))
}

/** Inserts a payout that the provider is about to be asked for. */
export async function insertPrepared(keeping: Keeping, terms: PayoutTerms): Promise<PreparedPayout> {
  const { id, reference, createdAt } = terms
  const { dataKey } = keeping.settings
  const row = await keeping.database.kysely
    .insertInto('prepared_payout')
    .values({
      id,
      account_id: terms.accountId,
      recipient_id: terms.recipientId,
      place: terms.place,
      asset: terms.money.asset,
      units: terms.money.units,
      fee_units: terms.fee,
      currency: terms.currency,
      recipient_units: terms.recipientUnits,
      rate: terms.rate,
      eta: terms.eta,
      sealed: reference === null ? null : seal(dataKey, { purpose: REFERENCE_PURPOSE, owner: id }, reference),
      status: 'new',
      created_at: createdAt,
      tried_at: createdAt,
    })
    .returningAll()
    .executeTakeFirstOrThrow()
  return parsePreparedPayout(keeping, row)
}

/**
 * Reads whether another unfunded payout of the same amount waits at the same address, so that the provider could take the
 * money for that one. An unanswered one of the account may.
 */
export async function isDepositShared(
  { kysely }: Connection,
  {
    id,
    accountId,
    depositTo,
    money,
  }: Pick<PayoutTerms, 'id' | 'accountId' | 'money'> & { depositTo: Address },
): Promise<boolean> {
  const prepared = await kysely
    .selectFrom('prepared_payout')
    .select('id')
    .where('id', '!=', id)
    .where('status', 'in', ['new', 'awaiting', 'ending'])
    .where('asset', '=', money.asset)
    .where('units', '=', money.units)
    .where(({ and, eb, or }) =>
      or([
        eb('deposit_to', '=', depositTo),
        and([eb('deposit_to', 'is', null), eb('account_id', '=', accountId)]),
      ]),
    )
    .executeTakeFirst()
  if (prepared !== undefined) return true
  const payout = await kysely
    .selectFrom('payout')
    .leftJoin('transfer', (join) =>
      join.onRef('transfer.decision_id', '=', 'payout.decision_id').on('transfer.funding_id', 'is', null),
    )
    .innerJoin('reservation', 'reservation.decision_id', 'payout.decision_id')
    .select('payout.id')
    .where('payout.id', '!=', id)
    .where(({ and, eb, or }) =>
      or([
        eb('deposit_to', '=', depositTo),
        // Given up without an answer, and not canceled yet.
        and([
          eb('deposit_to', 'is', null),
          eb('payout.account_id', '=', accountId),
          eb('reservation.status', '=', 'released'),
        ]),
      ]),
    )
    .where('rank', '<', 2)
    .where('payout.asset', '=', money.asset)
    .where('payout.units', '=', money.units)
    .where('transfer.id', 'is', null)
    .executeTakeFirst()
  return payout !== undefined
}

function parsePreparedPayout(
  { settings }: Pick<Keeping, 'settings'>,
  row: Selectable<PreparedPayoutTable>,
): PreparedPayout {
  const { id, sealed, deposit_to: depositTo } = row
  return {
    id,
    accountId: row.account_id,
    recipientId: row.recipient_id,
    place: row.place,
    money: { asset: parseAsset(row.asset), units: row.units },
    fee: row.fee_units,
    currency: z.enum(payoutCurrencies).parse(row.currency),
    recipientUnits: row.recipient_units,
    rate: row.rate,
    eta: row.eta,
    reference:
      sealed === null ? null : unseal(settings.dataKey, { purpose: REFERENCE_PURPOSE, owner: id }, sealed),
    createdAt: row.created_at,
    providerId: row.provider_id,
    depositTo: depositTo === null ? null : `0x${depositTo.slice(2)}`,
    status: row.status,
  }
}
