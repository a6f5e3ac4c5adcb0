/** Payouts: money that leaves for a bank account. The row is written before the provider is called; rows only advance. */
import type { Selectable } from 'kysely'
import { z } from 'zod'
import { payoutStatuses } from '../../../policies/banking/payout-states.ts'
import type { Page } from '../../core/base/page.ts'
import { seal, unseal } from '../../core/base/seal.ts'
import { untrustedTextOrNull } from '../../core/base/untrusted-text.ts'
import { type Asset, assetDecimals, type Money, toDecimal } from '../../core/money/money.ts'
import { payoutCurrencies } from '../../providers/banking/port.ts'
import type { Connection } from '../../storage/database.ts'
import type { PayoutTable } from '../../storage/schema.ts'

/** State of a payout that the provider did not accept, or that was given up before it was funded. */
export const REJECTED = 'rejected'

/** Purpose of the seal of references. */
export const REFERENCE_PURPOSE = 'payout reference'

/** A payout as stored. @property fee part of the money, in its smallest units. @property providerId null: no answer yet. */
export interface Payout {
  readonly id: string
  readonly accountId: string
  readonly keyId: string | null
  readonly decisionId: string
  readonly recipientId: string
  readonly providerId: string | null
  readonly status: PayoutTable['status']
  readonly state: string
  readonly rank: number
  readonly place: string
  readonly money: Money
  readonly fee: bigint
  readonly currency: (typeof payoutCurrencies)[number]
  readonly recipientUnits: bigint
  readonly rate: string
  readonly eta: Date
  readonly reference: string | null
  readonly reason: string | null
  readonly createdAt: Date
  readonly updatedAt: Date
}

/** Terms on which the provider is asked for a payout. */
export type PayoutTerms = Pick<
  Payout,
  | 'id'
  | 'accountId'
  | 'recipientId'
  | 'place'
  | 'money'
  | 'fee'
  | 'currency'
  | 'recipientUnits'
  | 'rate'
  | 'eta'
  | 'reference'
  | 'createdAt'
>

/** @property quoteId quote that the payout uses up; null: none. */
export type NewPayout = Omit<Payout, 'providerId' | 'status' | 'state' | 'rank' | 'reason' | 'updatedAt'> & {
  readonly quoteId: string | null
}

export const payoutView = z.strictObject({
  id: z.string().describe('`out_…`'),
  status: z
    .enum(payoutStatuses)
    .describe(
      '`pending`: accepted; `sent`: the bank has it; `paid`; `returned`: it came back; `failed`: it never left. The money of the last two is available again.',
    ),
  recipientId: z.string().describe('`rcp_…`: the recipient.'),
  amount: z.string().describe('Amount that leaves the account, with the fee, as a decimal string.'),
  asset: z.enum(['USD', 'USDC']).describe('Asset that is paid out.'),
  fee: z.string().describe('Fee within the amount, as a decimal string of the asset.'),
  currency: z.enum(payoutCurrencies).describe('Currency that the recipient gets.'),
  recipientAmount: z.string().describe('Amount that the recipient gets, as a decimal string.'),
  rate: z.string().describe('Units of the currency per unit of the asset, as a decimal string.'),
  eta: z.string().describe('When it is expected to arrive, ISO 8601 UTC.'),
  decisionId: z.string().describe('`dec_…`: the policy decision that allowed it.'),
  reference: untrustedTextOrNull('Reference that the recipient sees; null if there is none.'),
  memo: untrustedTextOrNull('Memo of the payer; null without one.'),
  reason: z.string().nullable().describe('Machine-readable reason of a failure; null without one.'),
  recourseId: z.string().nullable().describe('`rec_…`: its recourse; null without one.'),
  createdAt: z.string().describe('When it was requested, ISO 8601 UTC.'),
  updatedAt: z.string().describe('When its state last changed, ISO 8601 UTC.'),
})
payoutView.register(z.globalRegistry, { id: 'Payout' })

export function viewPayout(
  payout: Payout,
  {
    memo,
    recourseId,
  }: {
    readonly memo: string | null
    readonly recourseId?: string | null | undefined
  },
): z.input<typeof payoutView> {
  const { id, status, recipientId, money, fee, currency, recipientUnits, rate, decisionId } = payout
  return {
    id,
    status,
    recipientId,
    amount: toDecimal(money),
    asset: money.asset === 'USD' ? 'USD' : 'USDC',
    fee: toDecimal({ asset: money.asset, units: fee }),
    currency,
    recipientAmount: toDecimal({ asset: currency, units: recipientUnits }),
    rate,
    eta: payout.eta.toISOString(),
    decisionId,
    reference: payout.reference,
    memo,
    reason: payout.reason,
    recourseId: recourseId ?? null,
    createdAt: payout.createdAt.toISOString(),
    updatedAt: payout.updatedAt.toISOString(),
  }
}

interface Keeping {
  readonly database: Connection
  readonly settings: { readonly dataKey: Uint8Array }
}

/**
 * Inserts a payout if its hold is still reserved and its recipient still there, so that this insert excludes a job that
 * releases the hold and a removal of the recipient. @returns false when one of them came first, or its quote is used.
 */
export async function insertPayout({ database, settings }: Keeping, payout: NewPayout): Promise<boolean> {
  const { id, reference } = payout
  const rows = await database.call(
    {
      name: 'banking_insert_payout',
      text: `insert into payout
          (id, account_id, decision_id, recipient_id, key_id, status, state, rank, place, asset, units, fee_units, currency,
            recipient_units, rate, eta, sealed, created_at, updated_at, tried_at, quote_id)
        select $1, $2, r.decision_id, p.id, $5, 'pending', 'new', 0, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $15, $15, $16
        from (select decision_id from reservation where decision_id = $3 and status = 'reserved' for update) r,
          (select id from payout_recipient where id = $4 and account_id = $2 and status <> 'removed' for share) p
        on conflict do nothing
        returning id`,
    },
    [
      id,
      payout.accountId,
      payout.decisionId,
      payout.recipientId,
      payout.keyId,
      payout.place,
      payout.money.asset,
      payout.money.units,
      payout.fee,
      payout.currency,
      payout.recipientUnits,
      payout.rate,
      payout.eta,
      reference === null
        ? null
        : seal(settings.dataKey, { purpose: REFERENCE_PURPOSE, owner: id }, reference),
      payout.createdAt,
      payout.quoteId,
    ],
  )
  return rows.length === 1
}

/** Identifies a payout: by id within an account or one of its keys (null: all), or by its decision. */
type PayoutName =
  | { readonly accountId: string; readonly keyId: string | null; readonly id: string }
  | { readonly decisionId: string }

export async function findPayout(keeping: Keeping, name: PayoutName): Promise<Payout | undefined> {
  let query = keeping.database.kysely.selectFrom('payout').selectAll()
  if ('decisionId' in name) query = query.where('decision_id', '=', name.decisionId)
  else {
    query = query.where('account_id', '=', name.accountId).where('id', '=', name.id)
    if (name.keyId !== null) query = query.where('key_id', '=', name.keyId)
  }
  const row = await query.executeTakeFirst()
  return row === undefined ? undefined : parsePayout(keeping, row)
}

/** Finds a payout of any account. */
export async function findAnyPayout(keeping: Keeping, { id }: { id: string }): Promise<Payout | undefined> {
  const row = await keeping.database.kysely
    .selectFrom('payout')
    .selectAll()
    .where('id', '=', id)
    .executeTakeFirst()
  return row === undefined ? undefined : parsePayout(keeping, row)
}

/** Locks a payout by our id or the provider's. */
export async function lockPayout(
  keeping: Keeping,
  by: { readonly id: string } | { readonly providerId: string },
): Promise<Payout | undefined> {
  const query = keeping.database.kysely.selectFrom('payout').selectAll()
  const row = await ('id' in by
    ? query.where('id', '=', by.id)
    : query.where('provider_id', '=', by.providerId)
  )
    .forUpdate()
    .executeTakeFirst()
  return row === undefined ? undefined : parsePayout(keeping, row)
}

/** Lists an account's payouts, or those of one of its keys, newest first: one more than the page's limit. */
export async function listPayouts(
  keeping: Keeping,
  { accountId, keyId, page }: { accountId: string; keyId: string | null; page: Page },
): Promise<Payout[]> {
  let query = keeping.database.kysely.selectFrom('payout').selectAll().where('account_id', '=', accountId)
  if (keyId !== null) query = query.where('key_id', '=', keyId)
  if (page.after !== null) query = query.where('id', '<', page.after)
  const rows = await query
    .orderBy('id', 'desc')
    .limit(page.limit + 1)
    .execute()
  return rows.map((row) => parsePayout(keeping, row))
}

/**
 * Claims payouts that may still change, untouched since a moment, the longest untouched first; concurrent processes
 * claim different ones.
 */
export async function claimPayouts(
  keeping: Keeping,
  { before, at, limit }: { before: Date; at: Date; limit: number },
): Promise<Payout[]> {
  const rows = await keeping.database.kysely
    .updateTable('payout')
    .set({ tried_at: at })
    .where('id', 'in', (query) =>
      query
        .selectFrom('payout')
        .select('id')
        .where('rank', '<', 5)
        .where('tried_at', '<', before)
        // A payout stopped by an alarm waits for an administrator.
        .where(({ not, exists, selectFrom }) =>
          not(
            exists(
              selectFrom('alarm')
                .select('alarm.reason')
                .where('alarm.domain', '=', 'banking')
                .whereRef('alarm.object_id', '=', 'payout.id')
                .where('alarm.resolved_at', 'is', null),
            ),
          ),
        )
        .orderBy('tried_at')
        .limit(limit)
        .forUpdate()
        .skipLocked(),
    )
    .returningAll()
    .execute()
  return rows.map((row) => parsePayout(keeping, row))
}

function parsePayout({ settings }: Pick<Keeping, 'settings'>, row: Selectable<PayoutTable>): Payout {
  const { id, sealed } = row
  return {
    id,
    accountId: row.account_id,
    keyId: row.key_id,
    decisionId: row.decision_id,
    recipientId: row.recipient_id,
    providerId: row.provider_id,
    status: row.status,
    state: row.state,
    rank: row.rank,
    place: row.place,
    money: { asset: parseAsset(row.asset), units: row.units },
    fee: row.fee_units,
    currency: z.enum(payoutCurrencies).parse(row.currency),
    recipientUnits: row.recipient_units,
    rate: row.rate,
    eta: row.eta,
    reference:
      sealed === null ? null : unseal(settings.dataKey, { purpose: REFERENCE_PURPOSE, owner: id }, sealed),
    reason: row.reason,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
  }
}

export function parseAsset(text: string): Asset {
  const known = Object.keys(assetDecimals).find((asset): asset is Asset => asset === text)
  if (known === undefined) throw new Error(`a payout is stored in the unknown asset ${text}`)
  return known
}
