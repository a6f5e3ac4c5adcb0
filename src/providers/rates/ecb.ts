/**
 * Rates of the European Central Bank's daily publication (XML, about 16:00 CET on working days). Kept for a while, because
 * it changes once a day; where it cannot be had, the last one serves until it is too old to sell. Nothing is guessed: a
 * document that is not exactly what the bank publishes is no document.
 * @see https://www.ecb.europa.eu/stats/policy_and_exchange_rates/euro_reference_exchange_rates
 */

import type { Log } from '../../base/log.ts'
import { Failure } from '../../failures/failure.ts'
import type { RateTable } from '../../money/rate-table.ts'
import { callProvider } from '../http-client.ts'
import type { Rates } from '../rates.ts'

/** Where the bank publishes. */
export const ECB_URL = 'https://www.ecb.europa.eu/stats/eurofxref/eurofxref-daily.xml'

/** How long answers serve, in milliseconds. The publication of the Thursday before Easter is the newest for five days and a half. */
interface EcbTimes {
  readonly maxAgeMs?: number
  readonly freshMs?: number
  readonly retryMs?: number
  readonly timeoutMs?: number
}

const HOUR_MS = 60 * 60 * 1000
const LARGEST_BYTES = 64 * 1024
/** Fewer than this is a broken publication; it has had thirty and more since 2007. */
const FEWEST_CURRENCIES = 20

const PUBLICATION = /<Cube\s+time\s*=\s*(['"])(\d{4}-\d{2}-\d{2})\1\s*>([\s\S]*?)<\/Cube>/g
const RATE =
  /<Cube\s+currency\s*=\s*(['"])([A-Z]{3})\1\s+rate\s*=\s*(['"])((?:0|[1-9]\d{0,8})(?:\.\d{1,10})?)\3\s*\/>/g

/** The rates port over the feed. Those who ask while it is being fetched share that fetch. */
export function createEcbRates(
  { url, log }: { readonly url: string; readonly log: Log },
  { maxAgeMs = 6 * 24 * HOUR_MS, freshMs = HOUR_MS, retryMs = 30_000, timeoutMs = 5_000 }: EcbTimes = {},
): Rates {
  let table: RateTable | undefined
  let dueMs = Number.NEGATIVE_INFINITY
  let fetching: Promise<void> | undefined

  const refresh = async (now: Date): Promise<void> => {
    try {
      const newest = await fetchTable(url, timeoutMs)
      requirePlausible(newest, table, now)
      // A mirror may serve an older publication than the one that is known.
      if (table === undefined || newest.asOf >= table.asOf) table = newest
      dueMs = now.getTime() + freshMs
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

/** @throws Error where it does not come in time or is not what the bank publishes. */
async function fetchTable(url: string, timeoutMs: number): Promise<RateTable> {
  const headers = { accept: 'application/xml, text/xml' }
  const { ok, status, text } = await callProvider({ url, headers, timeoutMs, maxBytes: LARGEST_BYTES })
  if (!ok) throw new Error(`the publisher of rates answered ${status}`)
  return parseEcb(text)
}

/** Rates for one euro that no crisis has left since the euro exists, and far from a decimal point in the wrong place. */
const ranges: ReadonlyMap<string, readonly [least: number, most: number]> = new Map([
  ['USD', [0.5, 2.5]],
  ['GBP', [0.4, 1.5]],
  ['INR', [30, 300]],
])
/** A publication is of the day that it is fetched on, or earlier; clocks and time zones differ by less than a day. */
const AHEAD_MS = 24 * HOUR_MS
/** No rate of these has moved by a fifth between two publications that follow each other within days. */
const MAX_JUMP = 0.2

/**
 * Judges a publication against the calendar, against what rates can be, and against the last one that was believed. Numbers are
 * compared, never reckoned with. @throws Error saying what does not fit: the last publication serves until it is too old.
 */
function requirePlausible(newest: RateTable, last: RateTable | undefined, now: Date): void {
  if (newest.asOf.getTime() > now.getTime() + AHEAD_MS)
    throw new Error(`the publication is of ${newest.asOf.toISOString().slice(0, 10)}, which is yet to come`)
  for (const [code, [least, most]] of ranges) {
    const rate = Number(newest.perEuro.get(code))
    if (!(rate >= least && rate <= most)) throw new Error(`the publication says ${rate} ${code} for one euro`)
    const before = Number(last?.perEuro.get(code) ?? rate)
    if (Math.abs(rate / before - 1) > MAX_JUMP)
      throw new Error(`the publication has ${code} move from ${before} to ${rate} for one euro`)
  }
}

/** The table of a publication. @throws Error where it is not what the bank publishes. */
export function parseEcb(xml: string): RateTable {
  const [publication, ...others] = [...xml.matchAll(PUBLICATION)]
  const [, , day = '', cubes = ''] = publication ?? []
  const asOf = new Date(`${day}T00:00:00.000Z`)
  if (publication === undefined || others.length > 0 || Number.isNaN(asOf.getTime()))
    throw new Error('the publication does not have exactly one day')
  const rates = [...cubes.matchAll(RATE)].map(([, , code = '', , rate = '']) => [code, rate] as const)
  const isWhole = cubes.replaceAll(RATE, '').trim() === '' && rates.every(([, rate]) => /[1-9]/.test(rate))
  const perEuro = new Map([['EUR', '1'], ...rates])
  if (!isWhole || perEuro.size !== rates.length + 1 || rates.length < FEWEST_CURRENCIES)
    throw new Error('the publication holds something else than one rate for each currency')
  return { source: `ECB euro reference rates of ${day}`, asOf, perEuro }
}

function ratesUnavailable(table: RateTable | undefined, retryMs: number): Failure {
  const what =
    table === undefined
      ? 'No reference rates could be fetched.'
      : `The newest reference rates are of ${table.asOf.toISOString().slice(0, 10)}: too old to sell.`
  return new Failure('rates_unavailable', `${what} Nothing was charged.`, {
    retryAfter: Math.ceil(retryMs / 1000),
    hint: 'Ask again after Retry-After seconds.',
  })
}
