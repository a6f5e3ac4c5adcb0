/**
 * Terms under which sellers have just delivered: a purchase of the same URL by an open channel presents its voucher at once, without
 * asking for the price. The price is decided on as any other, and a seller that wants something else is asked. Only this process
 * knows them, for a short time, so that a lower price is soon heard of.
 */
import { LRUCache } from 'lru-cache'
import { writeJson } from '../../../core/base/json.ts'
import { timers } from '../../../core/base/timers.ts'
import type { Database } from '../../../storage/database.ts'
import type { Offer } from '../offers.ts'
import type { PayableAsset, PurchaseTerms } from '../terms.ts'

/** How long terms are known since the seller was asked. */
const KNOWN_MS = 60_000
/** How long a seller that refused known terms is always asked. */
const DISTRUST_MS = 600_000
/** Of all offers together, in characters. */
const MAX_LENGTH = 8 * 1024 * 1024

/** @property sinceBlock number of a block before the seller was asked. */
export interface KnownTerms {
  readonly offer: Offer & { readonly asset: PayableAsset }
  readonly sinceBlock: bigint
}

/** What is bought, and by whom. */
export interface KnownCall {
  readonly keyId: string
  readonly chain: string
  readonly asset: PayableAsset
  readonly method: string
  readonly url: string
}

// By database, because a process of tests has several with equal ids.
const known = new WeakMap<object, LRUCache<string, KnownTerms | 'distrusted'>>()

function termsOf({ kysely }: Pick<Database, 'kysely'>): LRUCache<string, KnownTerms | 'distrusted'> {
  const terms =
    known.get(kysely) ??
    new LRUCache<string, KnownTerms | 'distrusted'>({
      maxSize: MAX_LENGTH,
      ttl: KNOWN_MS,
      ttlResolution: 0,
      perf: { now: () => timers.monotonic() },
    })
  known.set(kysely, terms)
  return terms
}

function toName({ keyId, chain, asset, method, url }: KnownCall): string {
  return JSON.stringify([keyId, chain, asset, method, url])
}

/** @returns undefined if the seller is to be asked. */
export function findKnownTerms(database: Pick<Database, 'kysely'>, call: KnownCall): KnownTerms | undefined {
  const found = termsOf(database).get(toName(call))
  return found === 'distrusted' ? undefined : found
}

/** Remembers terms that the seller was asked for, and delivered under. */
export function rememberTerms(
  database: Pick<Database, 'kysely'>,
  { keyId, chain }: Pick<KnownCall, 'keyId' | 'chain'>,
  terms: PurchaseTerms,
): void {
  const { method, url, protocol, scheme, network, asset, token, payTo, units, seconds, offer } = terms
  const name = toName({ keyId, chain, asset, method, url })
  const all = termsOf(database)
  if (all.has(name)) return
  const entry = {
    offer: {
      ...{ chain, protocol, scheme, network, asset, token, payTo, seconds, offer },
      ...{ units: BigInt(units), description: null, reason: null },
    },
    sinceBlock: BigInt(terms.sinceBlock),
  }
  all.set(name, entry, { size: name.length + writeJson(offer).length })
}

/** Forgets terms that the seller does not keep to. */
export function distrustTerms(database: Pick<Database, 'kysely'>, call: KnownCall): void {
  const name = toName(call)
  termsOf(database).set(name, 'distrusted', { size: name.length, ttl: DISTRUST_MS })
}
