/** What this deployment learnt of sellers: whether they delivered, and what they changed. */
import { LRUCache } from 'lru-cache'
import { z } from 'zod'
import { timers } from '../../core/base/timers.ts'
import { type Connection, callForRow, type Database, type Statement } from '../../storage/database.ts'
import { payableAssets, protocols } from './terms.ts'

const outcomes: Statement = {
  name: 'seller_outcomes',
  text: 'select seller_outcomes($1, $2) as outcomes',
}

/** Reads whether a seller's latest paid purchases were delivered: `1` or `0` each, newest first. */
export async function findSellerOutcomes(
  connection: Connection,
  { accountId, seller }: { accountId: string; seller: string },
): Promise<string> {
  const row = await callForRow<{ outcomes: string }>(connection, outcomes, [accountId, seller])
  return row.outcomes
}

/** @property medianMs from the decision to the delivery. @property isShared it is of all accounts, not only of the asker's. */
export interface SellerRecord {
  readonly isShared: boolean
  readonly purchases: number
  readonly delivered: number
  readonly undelivered: number
  readonly medianMs: number | null
  readonly lastAt: Date
  readonly priceChanges: number
  readonly payeeChanges: number
  readonly refunded: number
}

const records: Statement = {
  name: 'seller_records',
  text: `select seller, is_shared, purchases, delivered, undelivered, median_ms, last_at, price_changes, payee_changes, refunded
    from seller_records($1, $2)`,
}

const recordRow = z.object({
  seller: z.string(),
  is_shared: z.boolean(),
  purchases: z.bigint(),
  delivered: z.bigint(),
  undelivered: z.bigint(),
  median_ms: z.number().nullable(),
  last_at: z.date(),
  price_changes: z.bigint(),
  payee_changes: z.bigint(),
  refunded: z.bigint(),
})

export async function findSellerRecords(
  connection: Connection,
  { accountId, sellers }: { accountId: string; sellers: readonly string[] },
): Promise<ReadonlyMap<string, SellerRecord>> {
  const rows = await connection.call(records, [accountId, [...new Set(sellers)]])
  return new Map(
    z
      .array(recordRow)
      .parse(rows)
      .map((row) => [
        row.seller,
        {
          isShared: row.is_shared,
          purchases: Number(row.purchases),
          delivered: Number(row.delivered),
          undelivered: Number(row.undelivered),
          medianMs: row.median_ms === null ? null : Math.round(row.median_ms),
          lastAt: row.last_at,
          priceChanges: Number(row.price_changes),
          payeeChanges: Number(row.payee_changes),
          refunded: Number(row.refunded),
        },
      ]),
  )
}

/** A resource that was paid for, with its price in smallest units. @property at null where it is of many accounts. */
const boughtResource = z.object({
  resource: z.string(),
  origin: z.string(),
  seller: z.string(),
  protocol: z.enum(protocols),
  asset: z.enum(payableAssets),
  units: z.bigint(),
})
export type BoughtResource = z.output<typeof boughtResource>

const bought: Statement = {
  name: 'sellers_bought',
  text: 'select resource, origin, seller, protocol, asset, units, at from sellers_bought($1, $2, $3)',
}

const MAX_RESOURCES = 500

/** Finds what an account, or one of its keys, has paid for, newest first. */
export async function findBoughtResources(
  connection: Connection,
  { accountId, keyId }: { accountId: string; keyId: string | null },
): Promise<readonly BoughtResource[]> {
  return z.array(boughtResource).parse(await connection.call(bought, [accountId, keyId, MAX_RESOURCES]))
}

const shared: Statement = {
  name: 'sellers_shared',
  text: 'select resource, origin, seller, protocol, asset, units from sellers_shared($1, $2)',
}

const SHARED_DAYS = 90
const DAY_MS = 86_400_000
/** The whole table is read for it, and it changes slowly. */
const SHARED_TTL_MS = 60_000
const kept = new WeakMap<object, LRUCache<'shared', readonly BoughtResource[]>>()

/** Finds what at least five accounts have paid for. May be stale for a minute. */
export async function findSharedResources(database: Database, now: Date): Promise<readonly BoughtResource[]> {
  const cache =
    kept.get(database) ??
    new LRUCache<'shared', readonly BoughtResource[]>({
      max: 1,
      ttl: SHARED_TTL_MS,
      ttlResolution: 0,
      perf: { now: () => timers.monotonic() },
    })
  kept.set(database, cache)
  const fresh = cache.get('shared')
  if (fresh !== undefined) return fresh
  const since = new Date(now.getTime() - SHARED_DAYS * DAY_MS)
  const found = z.array(boughtResource).parse(await database.call(shared, [since, MAX_RESOURCES]))
  cache.set('shared', found)
  return found
}
