/** Stored swap quotes, kept until they expire. */

import { timingSafeEqual } from 'node:crypto'
import { z } from 'zod'
import { canonicalJson, type Json } from '../../core/base/json.ts'
import { keyedHash } from '../../core/base/seal.ts'
import { type Stablecoin, stablecoins } from '../../core/money/money.ts'
import type { SwapRoute } from '../../providers/chain/port.ts'
import type { Connection } from '../../storage/database.ts'

/**
 * What of a quote can be executed.
 * @property tool aggregator of the route. @property expected smallest units of what arrives. @property feeMicros cost within it, in
 * millionths of a US dollar.
 */
export interface ExecutableQuote {
  readonly tool: string
  readonly chain: string
  readonly sell: Stablecoin
  readonly units: bigint
  readonly expected: bigint
  readonly feeMicros: bigint
  readonly route: SwapRoute
}

/** A stored quote. @property answer as sent to the client. @property executable null: the quote is a price only. */
export interface StoredQuote {
  readonly id: string
  readonly accountId: string
  readonly answer: Json
  readonly executable: ExecutableQuote | null
  readonly at: Date
  readonly expiresAt: Date
}

const hex = z.templateLiteral(['0x', z.string().regex(/^[0-9a-fA-F]*$/)])
const units = z
  .string()
  .regex(/^\d{1,39}$/)
  .transform(BigInt)

/** A quote from JSON. */
export const executableQuote = z.strictObject({
  tool: z.string(),
  chain: z.string(),
  sell: z.enum(stablecoins),
  units,
  expected: units,
  feeMicros: units,
  route: z.strictObject({
    buy: z.enum(stablecoins),
    minReceived: units,
    target: hex,
    spender: hex.nullable(),
    data: hex,
    burn: z.strictObject({ to: z.string(), domain: z.int().min(0), minFinality: z.int().min(0) }).optional(),
  }),
})

interface Keeping {
  readonly database: Connection
  readonly settings: { readonly dataKey: Uint8Array }
}

/** Stores a quote. Its route is authenticated: who only writes to the database cannot have another one executed. */
export async function insertQuote({ database, settings }: Keeping, quote: StoredQuote): Promise<void> {
  await database.kysely
    .insertInto('swap_quote')
    .values({
      id: quote.id,
      account_id: quote.accountId,
      answer: JSON.stringify(quote.answer),
      route: quote.executable === null ? null : toText(settings.dataKey, quote.id, quote.executable),
      created_at: quote.at,
      expires_at: quote.expiresAt,
    })
    .execute()
}

/** Finds what of an account's quote can be executed; undefined: no such quote. */
export async function findQuote(
  { database: { kysely }, settings }: Keeping,
  { accountId, id }: { accountId: string; id: string },
): Promise<{ readonly executable: ExecutableQuote | null; readonly expiresAt: Date } | undefined> {
  const row = await kysely
    .selectFrom('swap_quote')
    .select(['route', 'expires_at'])
    .where('id', '=', id)
    .where('account_id', '=', accountId)
    .executeTakeFirst()
  if (row === undefined) return undefined
  return {
    executable: row.route === null ? null : parseAuthentic(settings.dataKey, id, row.route),
    expiresAt: row.expires_at,
  }
}

const authenticated = z.strictObject({ quote: executableQuote, mac: z.string() })

/** @throws Error for a route that no process of this gateway wrote. */
function parseAuthentic(dataKey: Uint8Array, id: string, stored: unknown): ExecutableQuote {
  const { quote, mac } = authenticated.parse(stored)
  const [expected, found] = [quoteMac(dataKey, id, quote), mac].map((text) => Buffer.from(text))
  if (expected === undefined || found === undefined || expected.length !== found.length)
    throw new Error(`the quote ${id} fails authentication`)
  if (!timingSafeEqual(expected, found)) throw new Error(`the quote ${id} fails authentication`)
  return quote
}

function toText(dataKey: Uint8Array, id: string, quote: ExecutableQuote): string {
  return JSON.stringify({ quote: plainQuote(quote), mac: quoteMac(dataKey, id, quote) })
}

function quoteMac(dataKey: Uint8Array, id: string, quote: ExecutableQuote): string {
  return keyedHash(dataKey, 'swap quote', canonicalJson({ id, quote: plainQuote(quote) }))
}

/** A quote as JSON. */
export function plainQuote({ tool, chain, sell, units, expected, feeMicros, route }: ExecutableQuote) {
  return {
    ...{ tool, chain, sell },
    units: units.toString(),
    expected: expected.toString(),
    feeMicros: feeMicros.toString(),
    route: { ...route, minReceived: route.minReceived.toString() },
  }
}
