/** Sellers that a buyer may want: those that were paid, the sandbox's, and listed ones. */
import { visibleName } from '../../core/base/untrusted-text.ts'
import type { Chain } from '../../providers/chain/port.ts'
import type { Discovery, Listing } from '../../providers/discovery/port.ts'
import type { Database } from '../../storage/database.ts'
import { toSeller } from './request.ts'
import {
  type BoughtResource,
  findBoughtResources,
  findSellerRecords,
  findSharedResources,
  type SellerRecord,
} from './seller-records.ts'
import { type PayableAsset, type Protocol, payableAssets } from './terms.ts'

export const sellerSources = ['own', 'sandbox', 'bazaar'] as const
export const sellerOrders = ['record', 'price', 'recent'] as const

const MAX_SELLERS = 50
const MAX_NAME = 100
const MAX_ABOUT = 300

/** A resource that may be sold. @property units price in smallest units. */
export interface SellerEntry {
  readonly url: string
  readonly origin: string
  /** By which its record is kept. */
  readonly seller: string
  readonly name: string
  readonly about: string | null
  readonly protocol: Protocol
  readonly asset: PayableAsset
  readonly units: bigint
  readonly source: (typeof sellerSources)[number]
}

/** @property record null: nobody who may be told of has bought there. */
export interface FoundSeller extends SellerEntry {
  readonly record: SellerRecord | null
}

export interface Wanted {
  readonly accountId: string
  readonly keyId: string | null
  /** Words that its address, name or text must all have. */
  readonly query: string
  readonly asset: PayableAsset | null
  readonly maxUnits: bigint | null
  readonly order: (typeof sellerOrders)[number]
  readonly now: Date
}

/** @param sandbox the sellers of the sandbox. @returns at most 50. */
export async function findSellers(
  parts: {
    readonly database: Database
    readonly chain: Pick<Chain, 'id' | 'name' | 'tokens'>
    readonly discovery: Discovery
    readonly sandbox: readonly SellerEntry[]
  },
  wanted: Wanted,
): Promise<readonly FoundSeller[]> {
  const { database, chain, discovery, sandbox } = parts
  const [own, shared, listings] = await Promise.all([
    findBoughtResources(database, wanted),
    findSharedResources(database, wanted.now),
    discovery.list(),
  ])
  const listed = listings.flatMap((listing) => toEntry(chain, listing) ?? [])
  const entries = mergeByUrl([...[...own, ...shared].map(fromBought), ...sandbox, ...listed])
  const matching = entries.filter((entry) => isWanted(entry, wanted))
  const records = await findSellerRecords(database, {
    accountId: wanted.accountId,
    sellers: matching.map(({ seller }) => seller),
  })
  return matching
    .map((entry) => ({ ...entry, record: records.get(entry.seller) ?? null }))
    .toSorted(orders[wanted.order])
    .slice(0, MAX_SELLERS)
}

function fromBought({ resource, origin, seller, protocol, asset, units }: BoughtResource): SellerEntry {
  const name = new URL(origin).host
  return { url: resource, origin, seller, name, about: null, protocol, asset, units, source: 'own' }
}

/** The first offer that can be paid from here. @returns undefined without one. */
function toEntry(
  { id, name, tokens }: Pick<Chain, 'id' | 'name' | 'tokens'>,
  { url, name: given, about, offers }: Listing,
): SellerEntry | undefined {
  for (const { protocol, network, token, amount } of offers) {
    const asset = payableAssets.find((symbol) => tokens[symbol]?.toLowerCase() === token.toLowerCase())
    const isOurs = network === `eip155:${id}` || network === name
    if (asset === undefined || !isOurs || !/^[1-9]\d{0,17}$/.test(amount)) continue
    return {
      url: url.href,
      origin: url.origin,
      seller: toSeller({ url }).seller,
      name: visibleName(given ?? '', MAX_NAME) || url.host,
      about: visibleName(about ?? '', MAX_ABOUT) || null,
      protocol,
      asset,
      units: BigInt(amount),
      source: 'bazaar',
    }
  }
  return undefined
}

/** One entry a URL: the first one's price, which was paid or is known best, with the first name and text that somebody gave. */
function mergeByUrl(entries: readonly SellerEntry[]): readonly SellerEntry[] {
  const merged = new Map<string, SellerEntry>()
  for (const entry of entries) {
    const known = merged.get(entry.url)
    if (known === undefined) merged.set(entry.url, entry)
    else if (known.about === null && entry.about !== null)
      merged.set(entry.url, { ...known, name: entry.name, about: entry.about })
  }
  return [...merged.values()]
}

function isWanted(
  { url, name, about, asset, units }: SellerEntry,
  { query, asset: wantedAsset, maxUnits }: Wanted,
): boolean {
  const text = `${url} ${name} ${about ?? ''}`.toLowerCase()
  const words = query.toLowerCase().split(/\s+/)
  return (
    words.every((word) => text.includes(word)) &&
    (wantedAsset === null || asset === wantedAsset) &&
    (maxUnits === null || units <= maxUnits)
  )
}

type Order = (one: FoundSeller, other: FoundSeller) => number

const byPrice: Order = (one, other) => Number(one.units - other.units)

/** A seller without a record stands between those that deliver and those that do not. */
function rateDelivery({ record }: FoundSeller): number {
  return record === null ? 0.5 : (record.delivered + 1) / (record.delivered + record.undelivered + 2)
}

const orders: Readonly<Record<Wanted['order'], Order>> = {
  record: (one, other) => rateDelivery(other) - rateDelivery(one) || byPrice(one, other),
  price: byPrice,
  recent: (one, other) =>
    (other.record?.lastAt.getTime() ?? 0) - (one.record?.lastAt.getTime() ?? 0) || byPrice(one, other),
}
