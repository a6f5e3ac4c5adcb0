/**
 * Daily reference rates of the European Central Bank (XML, published about 16:00 CET on working days). Cached,
 * because they change once a day; during an outage the last table is used until it is too old for sales. A document
 * that deviates from the bank's format is rejected.
 * @see https://www.ecb.europa.eu/stats/policy_and_exchange_rates/euro_reference_exchange_rates
 */

import type { Log } from '../../core/base/log.ts'
import { Failure } from '../../core/failures/failure.ts'
import type { RateTable } from '../../core/money/rate-table.ts'
import { callProvider } from '../http-client.ts'
import type { KeptRates, Rates } from './port.ts'

export const ECB_URL = 'https://www.ecb.europa.eu/stats/eurofxref/eurofxref-daily.xml'

/**
 * Cache lifetimes in milliseconds. The publication of the Thursday before Easter is the newest for five and a half
 * days.
 */
interface EcbTimes {
  readonly maxAgeMs?: number
  readonly freshMs?: number
  readonly retryMs?: number
  readonly timeoutMs?: number
}

const HOUR_MS = 60 * 60 * 1000
const MAX_BYTES = 64 * 1024
/** A publication with fewer currencies is incomplete; it has had thirty or more since 2007. */
const MIN_CURRENCIES = 20

const PUBLICATION = /<Cube\s+time\s*=\s*(['"])(\d{4}-\d{2}-\d{2})\1\s*>([\s\S]*?)<\/Cube>/g
const RATE =
  /<Cube\s+currency\s*=\s*(['"])([A-Z]{3})\1\s+rate\s*=\s*(['"])((?:0|[1-9]\d{0,8})(?:\.\d{1,10})?)\3\s*\/>/g

/** The rates port over the feed. Concurrent callers share one request. @property kept null keeps nothing over restarts. */
export function createEcbRates(
  { url, log, kept = null }: { readonly url: string; readonly log: Log; readonly kept?: KeptRates | null },
  { maxAgeMs = 6 * 24 * HOUR_MS, freshMs = HOUR_MS, retryMs = 30_000, timeoutMs = 5_000 }: EcbTimes = {},
): Rates {
  let table: RateTable | undefined
  let dueMs = Number.NEGATIVE_INFINITY
  let fetching: Promise<void> | undefined

  let isLoaded = kept === null

  /** Kept rates have the age of their publication, so that they expire as if there had been no restart. */
  const load = async (): Promise<void> => {
    try {
      table ??= (await kept?.load()) ?? undefined
      isLoaded = true
    } catch (err) {
      log.warn({ err }, 'the kept reference rates cannot be read')
    }
  }
  const keep = async (newest: RateTable, now: Date): Promise<void> => {
    await kept
      ?.save(newest, now)
      .catch((err: unknown) => log.warn({ err }, 'the reference rates cannot be kept over a restart'))
  }
  const refresh = async (now: Date): Promise<void> => {
    if (!isLoaded) await load()
    try {
      const newest = await fetchTable(url, timeoutMs)
      requirePlausible(newest, table, now)
      // A mirror may serve an older publication than the known one.
      if (table === undefined || newest.asOf >= table.asOf) table = newest
      dueMs = now.getTime() + freshMs
      await keep(table, now)
    } catch (err) {
      dueMs = now.getTime() + retryMs
      log.warn({ err }, 'the reference rates cannot be fetched')
    }
  }
  return {
    latest: async (now) => {
      if (now.getTime() >= dueMs) {
        fetching ??= refresh(now).finally(() => {
          fetching = undefined
        })
        await fetching
      }
      if (table !== undefined && now.getTime() - table.asOf.getTime() <= maxAgeMs) return table
      throw ratesUnavailable(table, retryMs)
    },
  }
}

/** @throws Error when the document does not arrive in time or deviates from the bank's format. */
async function fetchTable(url: string, timeoutMs: number): Promise<RateTable> {
  const headers = { accept: 'application/xml, text/xml' }
  const { ok, status, text } = await callProvider({ url, headers, timeoutMs, maxBytes: MAX_BYTES })
  if (!ok) throw new Error(`the rates publisher answered ${status}`)
  return parseEcb(text)
}

/**
 * Plausible rates for one euro: wider than any rate since its introduction, and narrow enough to catch a misplaced
 * decimal point.
 */
const ranges: ReadonlyMap<string, readonly [min: number, max: number]> = new Map([
  ['USD', [0.5, 2.5]],
  ['GBP', [0.4, 1.5]],
  ['INR', [30, 300]],
])
/** Tolerance for a publication date ahead of our clock; clocks and time zones differ by less than a day. */
const AHEAD_MS = 24 * HOUR_MS
/** Maximum plausible change between two publications within days. */
const MAX_JUMP = 0.2

/**
 * Validates a publication against the calendar, plausible rates, and the last accepted publication. Numbers are only
 * compared.
 * @throws Error with the mismatch; the last publication stays in use until it is too old.
 */
function requirePlausible(newest: RateTable, last: RateTable | undefined, now: Date): void {
  if (newest.asOf.getTime() > now.getTime() + AHEAD_MS)
    throw new Error(`the publication is of ${newest.asOf.toISOString().slice(0, 10)}, which is in the future`)
  for (const [code, [min, max]] of ranges) {
    const rate = Number(newest.perEuro.get(code))
    if (!(rate >= min && rate <= max))
      throw new Error(`the publication has the implausible rate of ${rate} ${code} for one euro`)
    const before = Number(last?.perEuro.get(code) ?? rate)
    if (Math.abs(rate / before - 1) > MAX_JUMP)
      throw new Error(`the publication changes ${code} from ${before} to ${rate} for one euro`)
  }
}

/** Parses a publication. @throws Error when it deviates from the bank's format. */
export function parseEcb(xml: string): RateTable {
  const [publication, ...others] = [...xml.matchAll(PUBLICATION)]
  const [, , day = '', cubes = ''] = publication ?? []
  const asOf = new Date(`${day}T00:00:00.000Z`)
  if (publication === undefined || others.length > 0 || Number.isNaN(asOf.getTime()))
    throw new Error('the publication must have exactly one date')
  const rates = [...cubes.matchAll(RATE)].map(([, , code = '', , rate = '']) => [code, rate] as const)
  const isWhole = cubes.replaceAll(RATE, '').trim() === '' && rates.every(([, rate]) => /[1-9]/.test(rate))
  const perEuro = new Map([['EUR', '1'], ...rates])
  if (!isWhole || perEuro.size !== rates.length + 1 || rates.length < MIN_CURRENCIES)
    throw new Error('the publication must have exactly one rate per currency')
  return { source: `ECB euro reference rates of ${day}`, asOf, perEuro }
}

function ratesUnavailable(table: RateTable | undefined, retryMs: number): Failure {
  const what =
    table === undefined
      ? 'No reference rates could be fetched.'
      : `The newest reference rates are of ${table.asOf.toISOString().slice(0, 10)}: too old for sales.`
  return new Failure('rates_unavailable', `${what} Nothing was charged.`, {
    retryAfter: Math.ceil(retryMs / 1000),
    hint: 'Retry after Retry-After seconds.',
  })
}
