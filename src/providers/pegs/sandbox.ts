/**
 * Prices of the sandbox, set by POST /sandbox/prices and kept beside the reference rates in `rate_publication`: one for
 * each token, in its own currency. A token without a price is at par.
 */
import { sql } from 'kysely'
import { z } from 'zod'
import { type Stablecoin, stablecoins } from '../../money/money.ts'
import type { Database } from '../../storage/database.ts'
import { lostPegs, type Pegs } from '../pegs.ts'

const PUBLISHER = 'sandbox:prices'
const prices = z.partialRecord(z.enum(stablecoins), z.string().regex(/^\d\.\d{6}$/))

/** How long prices count before they are read again. */
const FRESH_MS = 1_000

export function createSandboxPegs(database: Pick<Database, 'kysely'>): Pegs {
  let known: { readonly lost: ReadonlySet<Stablecoin>; readonly readAt: number } | undefined
  return {
    lost: async (now) => {
      const readAt = now.getTime()
      if (known !== undefined && Math.abs(readAt - known.readAt) < FRESH_MS) return known.lost
      const row = await database.kysely
        .selectFrom('rate_publication')
        .select('per_euro')
        .where('publisher', '=', PUBLISHER)
        .executeTakeFirst()
      const set = prices.parse(row?.per_euro ?? {})
      const lost = lostPegs(
        stablecoins.map((token) => [token, BigInt((set[token] ?? '1.000000').replace('.', ''))] as const),
      )
      known = { lost, readAt }
      return lost
    },
    setPrice: async (token, micros, at) => {
      const digits = micros.toString().padStart(7, '0')
      const per_euro = JSON.stringify({ [token]: `${digits.slice(0, -6)}.${digits.slice(-6)}` })
      const values = { source: 'prices of the sandbox', as_of: at, fetched_at: at }
      await database.kysely
        .insertInto('rate_publication')
        .values({ publisher: PUBLISHER, per_euro, ...values })
        .onConflict((conflict) =>
          conflict
            .column('publisher')
            .doUpdateSet({ ...values, per_euro: sql`rate_publication.per_euro || excluded.per_euro` }),
        )
        .execute()
      known = undefined
    },
  }
}
