/** Terms of payouts: asked of the provider, or those of a quote that it keeps to. A quote is for one recipient, and is used once. */
import type { NewId } from '../../core/base/ids.ts'
import { Failure } from '../../core/failures/failure.ts'
import { moneyOf } from '../../core/money/money.ts'
import type { BankingProvider, PayoutQuote } from '../../providers/banking/port.ts'
import type { Connection } from '../../storage/database.ts'
import { requireArrival } from './admit-payout.ts'
import { parseAsset } from './payout.ts'
import type { PayoutAmount } from './payout-request.ts'
import type { Recipient } from './recipients.ts'

interface Quoting {
  readonly database: Connection
  readonly bankingProvider: Pick<BankingProvider, 'quotePayout'>
  readonly now: Date
}

interface QuotedPayout {
  readonly accountId: string
  readonly recipient: Pick<Recipient, 'id' | 'currency'>
  readonly said: PayoutAmount
}

/**
 * Finds the terms of a payout: its quote's, or the provider's at the moment.
 * @throws Failure `payout_rejected` when the quote cannot be used, or the provider does not pay this out;
 * `rates_unavailable`, `provider_unavailable`.
 */
export async function agreeTerms(
  { database, bankingProvider, now }: Quoting,
  { accountId, recipient, said }: QuotedPayout,
): Promise<PayoutQuote> {
  const { quoteId: id, asset = 'USD', amount, recipientAmount } = said
  if (id !== undefined)
    return requireQuote(database, { id, accountId, recipientId: recipient.id, asset: said.asset, now })
  const { currency } = recipient
  const asked =
    amount === undefined
      ? { asset, recipientUnits: moneyOf(currency, recipientAmount ?? '').units }
      : { money: moneyOf(asset, amount) }
  const terms = await bankingProvider.quotePayout({ ...asked, currency }, now)
  requireArrival(terms)
  return terms
}

/**
 * Stores terms that the provider keeps to. @returns the quote's id; null where it keeps to none, because it converts later.
 */
export async function insertQuote(
  { database, newId, now }: { database: Connection; newId: NewId; now: Date },
  { accountId, recipient, terms }: Omit<QuotedPayout, 'said'> & { terms: PayoutQuote },
): Promise<string | null> {
  if (terms.firmUntil === null) return null
  const id = newId('quote', now)
  await database.kysely
    .insertInto('payout_quote')
    .values({
      id,
      account_id: accountId,
      recipient_id: recipient.id,
      asset: terms.money.asset,
      units: terms.money.units,
      fee_units: terms.fee,
      currency: recipient.currency,
      recipient_units: terms.recipientUnits,
      rate: terms.rate,
      eta: terms.eta,
      expires_at: terms.firmUntil,
    })
    .execute()
  return id
}

/** Deletes quotes that expired before a moment. */
export async function sweepPayoutQuotes({ kysely }: Connection, before: Date): Promise<void> {
  await kysely.deleteFrom('payout_quote').where('expires_at', '<', before).execute()
}

async function requireQuote(
  { kysely }: Connection,
  {
    id,
    accountId,
    recipientId,
    asset,
    now,
  }: { id: string; accountId: string; recipientId: string; asset: PayoutAmount['asset']; now: Date },
): Promise<PayoutQuote> {
  const quote = await kysely
    .selectFrom('payout_quote')
    .leftJoin('payout', 'payout.quote_id', 'payout_quote.id')
    .selectAll('payout_quote')
    .select('payout.id as payoutId')
    .where('payout_quote.id', '=', id)
    .where('payout_quote.account_id', '=', accountId)
    .executeTakeFirst()
  if (quote === undefined) throw unusable('quote_unknown', 'The account has no such quote.')
  if (quote.recipient_id !== recipientId)
    throw unusable('quote_mismatch', `The quote is for the recipient ${quote.recipient_id}.`)
  if (asset !== undefined && quote.asset !== asset)
    throw unusable('quote_mismatch', `The quote is for ${quote.asset}.`)
  if (quote.payoutId !== null) throw unusable('quote_used', `The quote was used by ${quote.payoutId}.`)
  if (quote.expires_at <= now)
    throw unusable('quote_expired', `The quote expired at ${quote.expires_at.toISOString()}.`)
  return {
    money: { asset: parseAsset(quote.asset), units: quote.units },
    fee: quote.fee_units,
    rate: quote.rate,
    recipientUnits: quote.recipient_units,
    eta: quote.eta,
    firmUntil: quote.expires_at,
  }
}

function unusable(reason: string, detail: string): Failure {
  return new Failure('payout_rejected', `${detail} Nothing was sent.`, {
    reason,
    isFinal: true,
    hint: 'Ask for a new quote with POST /api/banking/payouts/quote, or send `recipientAmount`.',
  })
}
