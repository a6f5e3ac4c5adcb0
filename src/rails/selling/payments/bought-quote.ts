/** FX quotes that an owner's wallet paid for: the decision keeps the quote and the id of its payment. */
import { sql } from 'kysely'
import { getAddress } from 'viem'
import { z } from 'zod'
import { findAuthenticFacts } from '../../../books/spending/decisions.ts'
import type { Connection } from '../../../storage/database.ts'

export const quoteMembers = {
  quoteId: z.string().describe('`quote_…`'),
  from: z.string().describe('Currency or stablecoin to sell.'),
  to: z.string().describe('Currency or stablecoin to buy.'),
  amount: z.string().describe('Amount of `from`, as a decimal string.'),
  rate: z.string().describe('Units of `to` per unit of `from`, including the spread.'),
  result: z.string().describe('Amount of `to`, rounded down to its decimals.'),
  spreadBps: z.int().describe('Spread in basis points.'),
  source: z.string().describe('Publisher of the reference rates.'),
  asOf: z.string().describe('When the reference rates were published, ISO 8601 UTC.'),
  ageSec: z.int().describe('Age of the reference rates when quoted, in seconds.'),
  expiresAt: z.string().describe('When the quote expires, ISO 8601 UTC.'),
}

/** Facts of the decision on a quote that is paid from a wallet. */
export const soldQuote = z.strictObject({
  quoted: z.strictObject(quoteMembers),
  paymentId: z.string(),
  payer: z.string(),
  network: z.string(),
  price: z.string(),
})

/** The quote with its payment, as it is answered. */
export function viewBoughtQuote(
  { quoted, paymentId, payer, network, price }: z.output<typeof soldQuote>,
  transactionHash: string,
) {
  return {
    ...quoted,
    payment: {
      id: paymentId,
      transaction: transactionHash,
      network,
      amount: price,
      asset: 'USDC',
      payer: getAddress(payer),
    },
  }
}

/** Finds a payment for a quote by an account's wallet. @param keyId key that bought it; null: any. */
export async function findQuotePayment(
  { database, settings }: { database: Connection; settings: { readonly dataKey: Uint8Array } },
  { accountId, keyId, paymentId }: { accountId: string; keyId: string | null; paymentId: string },
) {
  const query = database.kysely
    .selectFrom('decision')
    .innerJoin('transfer', 'transfer.decision_id', 'decision.id')
    .select(['decision.id', 'transfer.state', 'transfer.transaction_hash'])
    .where(({ eb, ref }) => eb(sql<string>`${ref('decision.facts')} #>> '{found,paymentId}'`, '=', paymentId))
    .where('decision.operation', '=', 'x402.fx')
    .where('decision.verdict', '=', 'allow')
    .where('decision.account_id', '=', accountId)
  const row = await (keyId === null ? query : query.where('decision.key_id', '=', keyId)).executeTakeFirst()
  if (row === undefined) return undefined
  const { id: decisionId, state, transaction_hash: transaction } = row
  const facts = await findAuthenticFacts(database, { dataKey: settings.dataKey, decisionId, accountId })
  const isPaid = state === 'confirmed' && transaction !== null
  return {
    status: isPaid ? ('settled' as const) : state === 'failed' ? ('failed' as const) : ('pending' as const),
    transaction,
    result: isPaid ? viewBoughtQuote(soldQuote.parse(facts), transaction) : null,
  }
}
