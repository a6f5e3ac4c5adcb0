/** Transactions of a card: purchases and declines. */
import { z } from 'zod'
import type { Page } from '../../core/base/page.ts'
import { untrustedText } from '../../core/base/untrusted-text.ts'
import { toDecimal } from '../../core/money/money.ts'
import { cardReasons } from '../../providers/card-processor/port.ts'
import type { Connection } from '../../storage/database.ts'

const amount = z.string().describe('USD, as a decimal string.')

export const transactionView = z.strictObject({
  id: z.string().describe('`tx_…`'),
  status: z
    .enum(['pending', 'settled', 'voided', 'expired', 'declined'])
    .describe('`pending`: approved and held, not yet cleared.'),
  reason: z.string().describe(`Reason for the approval or decline: ${cardReasons.join(', ')}.`),
  merchant: untrustedText('Name of the merchant.'),
  mcc: z.string().nullable().describe('Merchant category code (ISO 18245).'),
  channel: z.string().nullable().describe('Payment channel; null when unknown.'),
  amount: amount.describe('Requested amount: USD, as a decimal string.'),
  approved: amount.describe('Approved amount: USD, as a decimal string.'),
  cleared: amount.describe('Cleared amount: USD, as a decimal string.'),
  refunded: amount.describe('Refunded amount: USD, as a decimal string.'),
  held: z
    .array(
      z.strictObject({
        asset: z.string().describe('Asset by symbol.'),
        amount: z.string().describe('Decimal string of the asset.'),
      }),
    )
    .describe('Amounts still held for it, by asset.'),
  decisionId: z
    .string()
    .nullable()
    .describe('`dec_…`: the spend decision; null when a control of the card declined it.'),
  recourseId: z.string().nullable().describe('`rec_…`: its recourse; null without one.'),
  createdAt: z.string().describe('When it was requested, ISO 8601 UTC.'),
})
transactionView.register(z.globalRegistry, { id: 'CardTransaction' })

const about = z.object({
  merchant: z.string().catch(''),
  mcc: z.string().nullable().catch(null),
  channel: z.string().nullable().catch(null),
})

/** Lists a card's transactions, newest first: one more than the page's limit. Their recourse is kept elsewhere. */
export async function listTransactions(
  database: Connection,
  { cardId, page }: { cardId: string; page: Page },
): Promise<Omit<z.output<typeof transactionView>, 'recourseId'>[]> {
  const query = database.kysely
    .selectFrom('card_authorization')
    .selectAll()
    .where('card_id', '=', cardId)
    .where('is_reserve', '=', false)
  const rows = await (page.after === null ? query : query.where('id', '<', page.after))
    .orderBy('id', 'desc')
    .limit(page.limit + 1)
    .execute()
  const ids = rows.map(({ id }) => id)
  const holds =
    ids.length === 0
      ? []
      : await database.kysely
          .selectFrom('card_hold')
          .selectAll()
          .where('authorization_id', 'in', ids)
          .where('units', '>', 0n)
          .orderBy('ordinal')
          .execute()
  const dollars = (units: bigint) => toDecimal({ asset: 'USD', units })
  return rows.map((row) => ({
    id: row.id,
    status: row.status,
    reason: row.reason,
    ...about.parse(row.about),
    amount: dollars(row.units),
    approved: dollars(row.approved),
    cleared: dollars(row.cleared),
    refunded: dollars(row.refunded),
    held: holds
      .filter((hold) => hold.authorization_id === row.id)
      .map(({ asset, units }) => ({ asset, amount: toDecimal({ asset: parseAsset(asset), units }) })),
    decisionId: row.decision_id,
    createdAt: row.created_at.toISOString(),
  }))
}

const asset = z.enum(['USDC', 'USDT', 'EURC', 'PYUSD', 'USD'])

function parseAsset(text: string): z.output<typeof asset> {
  return asset.parse(text)
}
