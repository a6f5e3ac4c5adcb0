/**
 * Prices of the sandbox, set by POST /sandbox/prices and kept beside the reference rates in `rate_publication`: one for
 * each token, in its own currency. A token without a price is at par.
 */
import { sql } from 'kysely'
import { z } from 'zod'
import { type Stablecoin, stablecoins } from '../../core/money/money.ts'
import type { Database } from '../../storage/database.ts'
import { lostPegs, type Pegs } from './port.ts'

const PUBLISHER = 'sandbox:prices'
const prices = z.partialRecord(z.enum(stablecoins), z.string().regex(/^\d\.\d{6}$/))

/** How long prices count before they are read again. */
const FRESH_MS = 1_000

/**
 * A caller may be inside a transaction, and the embedded database has one session: so prices are read beside the caller,
 * who gets those of the last reading. Only the first callers wait, for a reading that began with the process.
 */
export function createSandboxPegs(database: Pick<Database, 'kysely'>): Pegs {
  let known: { readonly lost: ReadonlySet<Stablecoin>; readonly readAt: number } | undefined
  let reading: Promise<ReadonlySet<Stablecoin>> | undefined
  const keep = (perEuro: unknown, readAt: number): ReadonlySet<Stablecoin> => {
    const set = prices.parse(perEuro ?? {})
    const lost = lostPegs(
      stablecoins.map((token) => [token, BigInt((set[token] ?? '1.000000').replace('.', ''))] as const),
    )
    known = { lost, readAt }
    return lost
  }
  const read = (readAt: number): Promise<ReadonlySet<Stablecoin>> => {
    reading ??= database.kysely
      .selectFrom('rate_publication')
      .select('per_euro')
      .where('publisher', '=', PUBLISHER)
      .executeTakeFirst()
      .then((row) => keep(row?.per_euro, readAt))
      .finally(() => {
        reading = undefined
      })
    return reading
  }
  read(0).catch(() => undefined)
  return {
    findLost: async (now) => {
      const readAt = now.getTime()
      if (known === undefined) return read(readAt)
      if (Math.abs(readAt - known.readAt) >= FRESH_MS) read(readAt).catch(() => undefined)
      return known.lost
    },
    setPrice: async (token, micros, at) => {
      const digits = micros.toString().padStart(7, '0')
      const per_euro = JSON.stringify({ [token]: `${digits.slice(0, -6)}.${digits.slice(-6)}` })
      const values = { source: 'prices of the sandbox', as_of: at, fetched_at: at }
      const row = await database.kysely
        .insertInto('rate_publication')
        .values({ publisher: PUBLISHER, per_euro, ...values })
        .onConflict((conflict) =>
          conflict
            .column('publisher')
            .doUpdateSet({ ...values, per_euro: sql`rate_publication.per_euro || excluded.per_euro` }),
        )
        .returning('per_euro')
        .executeTakeFirstOrThrow()
      // A reading that began before would bring the old price back.
      await reading?.catch(() => undefined)
      keep(row.per_euro, at.getTime())
    },
  }
}
