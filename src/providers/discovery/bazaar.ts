/**
 * Sellers that x402 facilitators list. Kept for ten minutes, and for as long as a service does not answer.
 * @see https://github.com/coinbase/x402/blob/main/specs/extensions/bazaar.md
 */
import { z } from 'zod'
import type { Log } from '../../core/base/log.ts'
import { timers } from '../../core/base/timers.ts'
import type { PublicFetch } from '../public-fetch.ts'
import { readPublicUrl } from '../public-url.ts'
import type { Discovery, ListedOffer, Listing } from './port.ts'

const FRESH_MS = 600_000
const RETRY_MS = 30_000
const TIMEOUT_MS = 4_000
const PAGE = 100
const MAX_PAGES = 5
const MAX_BYTES = 2 * 1024 * 1024
const MAX_OFFERS = 20
const MAX_URL_LENGTH = 2048

const page = z.looseObject({ items: z.array(z.unknown()).max(PAGE) })
const text = z.string().max(4096)
const item = z.looseObject({
  resource: z.string().max(MAX_URL_LENGTH),
  type: z.string().optional(),
  accepts: z.array(z.unknown()).max(MAX_OFFERS),
  description: text.nullish(),
  serviceName: text.nullish(),
})
const accept = z.looseObject({
  scheme: z.literal('exact'),
  network: z.string().max(100),
  asset: z.string().max(100),
  amount: z.string().max(40).optional(),
  maxAmountRequired: z.string().max(40).optional(),
})

/** @param urls addresses of facilitators, before `/discovery/resources`. @param loopback this machine's sellers may be listed. */
export function createBazaar({
  urls,
  fetchPublic,
  loopback,
  log,
}: {
  readonly urls: readonly string[]
  readonly fetchPublic: PublicFetch
  readonly loopback: boolean
  readonly log: Log
}): Discovery {
  const readPage = async (base: string, offset: number): Promise<readonly unknown[]> => {
    const answer = await fetchPublic({
      url: `${base.replace(/\/$/, '')}/discovery/resources?type=http&limit=${PAGE}&offset=${offset}`,
      method: 'GET',
      headers: { accept: 'application/json' },
      maxBytes: MAX_BYTES,
      timeoutMs: TIMEOUT_MS,
      loopback,
    })
    if (answer.status !== 200) throw new Error(`it answered ${answer.status}`)
    return page.parse(JSON.parse(Buffer.from(answer.body).toString())).items
  }
  const readAll = async (base: string): Promise<readonly Listing[]> => {
    const listings: Listing[] = []
    for (let pages = 0; pages < MAX_PAGES; pages += 1) {
      const items = await readPage(base, pages * PAGE)
      listings.push(...items.flatMap((one) => readItem(one, loopback) ?? []))
      if (items.length < PAGE) break
    }
    return listings
  }
  return joinServices(urls.map((url) => keepFresh(() => readAll(url), { url, log })))
}

/** Reads one entry. @returns undefined for what names no URL that can be bought from. */
function readItem(given: unknown, loopback: boolean): Listing | undefined {
  const read = item.safeParse(given)
  if (!read.success || (read.data.type ?? 'http') !== 'http') return undefined
  const { resource, accepts, description, serviceName } = read.data
  const url = readPublicUrl(resource, { loopback })
  if ('refused' in url) return undefined
  const offers = accepts.flatMap((each): ListedOffer[] => {
    const offer = accept.safeParse(each)
    if (!offer.success) return []
    const { network, asset, amount, maxAmountRequired } = offer.data
    const asked = amount ?? maxAmountRequired
    if (asked === undefined) return []
    // Entries mix the members of both versions: the form of the network tells them apart.
    return [{ protocol: network.includes(':') ? 'x402-v2' : 'x402-v1', network, token: asset, amount: asked }]
  })
  return { url: url.url, name: serviceName ?? null, about: description ?? null, offers }
}

/** Reads again when the last reading is old. Concurrent callers share one reading; only the first ones wait for it. */
function keepFresh(
  read: () => Promise<readonly Listing[]>,
  { url, log }: { url: string; log: Log },
): () => Promise<readonly Listing[]> {
  let known: readonly Listing[] | undefined
  let dueMs = Number.NEGATIVE_INFINITY
  let reading: Promise<void> | undefined
  const refresh = async () => {
    try {
      known = await read()
      dueMs = timers.monotonic() + FRESH_MS
    } catch (err) {
      log.warn({ err, host: new URL(url).host }, 'sellers that a service lists cannot be read')
      dueMs = timers.monotonic() + RETRY_MS
    }
  }
  return async () => {
    if (timers.monotonic() >= dueMs)
      reading ??= refresh().finally(() => {
        reading = undefined
      })
    if (known === undefined) await reading
    return known ?? []
  }
}

function joinServices(services: readonly (() => Promise<readonly Listing[]>)[]): Discovery {
  return { list: async () => (await Promise.all(services.map((list) => list()))).flat() }
}
