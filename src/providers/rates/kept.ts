/** The newest publication in the gateway's own database: table `rate_publication`. */
import { z } from 'zod'
import type { Database } from '../../storage/database.ts'
import type { KeptRates } from './port.ts'

const perEuro = z.record(z.string().regex(/^[A-Z]{3}$/), z.string().regex(/^(0|[1-9]\d{0,8})(\.\d{1,10})?$/))

/** @param publisher address of the feed. */
export function createKeptRates(database: Pick<Database, 'kysely'>, publisher: string): KeptRates {
  return {
    load: async () => {
      const row = await database.kysely
        .selectFrom('rate_publication')
        .select(['source', 'as_of', 'per_euro'])
        .where('publisher', '=', publisher)
        .executeTakeFirst()
      if (row === undefined) return null
      const rates = perEuro.parse(row.per_euro)
      return { source: row.source, asOf: row.as_of, perEuro: new Map(Object.entries(rates)) }
    },
    save: async ({ source, asOf, perEuro: rates }, at) => {
      const values = {
        source,
        as_of: asOf,
        per_euro: JSON.stringify(Object.fromEntries(rates)),
        fetched_at: at,
      }
      await database.kysely
        .insertInto('rate_publication')
        .values({ publisher, ...values })
        // Another gateway may have a newer one.
        .onConflict((conflict) =>
          conflict.column('publisher').doUpdateSet(values).where('rate_publication.as_of', '<=', asOf),
        )
        .execute()
    },
  }
}
