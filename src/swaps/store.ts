/** Quotes in the database: what was told to whom, for as long as it may be asked about. */
import type { Json } from '../base/json.ts'
import type { Connection } from '../storage/database.ts'

/** A quote that was given. @property answer as the client got it. */
export interface StoredQuote {
  readonly id: string
  readonly accountId: string
  readonly answer: Json
  readonly at: Date
  readonly expiresAt: Date
}

/** Keeps a quote. */
export async function insertQuote(database: Connection, quote: StoredQuote): Promise<void> {
  await database.kysely
    .insertInto('swap_quote')
    .values({
      id: quote.id,
      account_id: quote.accountId,
      answer: JSON.stringify(quote.answer),
      created_at: quote.at,
      expires_at: quote.expiresAt,
    })
    .execute()
}
