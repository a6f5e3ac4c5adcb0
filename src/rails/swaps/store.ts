/** Stored swap quotes, kept until they expire. */
import type { Json } from '../../core/base/json.ts'
import type { Connection } from '../../storage/database.ts'

/** A stored quote. @property answer as sent to the client. */
export interface StoredQuote {
  readonly id: string
  readonly accountId: string
  readonly answer: Json
  readonly at: Date
  readonly expiresAt: Date
}

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
