/** Quotable assets: stablecoins, and the currencies with ECB rates. */
import { assetDecimals, type Stablecoin, stablecoinCurrency } from './money.ts'
import type { RateTable } from './rate-table.ts'

/** Currencies without minor units. @see https://www.iso.org/iso-4217-currency-codes.html */
const wholeOnly: readonly string[] = ['ISK', 'JPY', 'KRW']

const twoDigits: readonly string[] = [
  'AUD',
  'BGN',
  'BRL',
  'CAD',
  'CHF',
  'CNY',
  'CZK',
  'DKK',
  'HKD',
  'HUF',
  'IDR',
  'ILS',
  'MXN',
  'MYR',
  'NOK',
  'NZD',
  'PHP',
  'PLN',
  'RON',
  'SEK',
  'SGD',
  'THB',
  'TRY',
  'ZAR',
]

const digitsByCode: ReadonlyMap<string, number> = new Map([
  ...Object.entries(assetDecimals),
  ...twoDigits.map((code) => [code, 2] as const),
  ...wholeOnly.map((code) => [code, 0] as const),
])

/** One side of a quote. @property perEuro units per 1 EUR, a decimal string. @property digits fraction digits. */
export interface Currency {
  readonly code: string
  readonly perEuro: string
  readonly digits: number
}

function isStablecoin(code: string): code is Stablecoin {
  return Object.hasOwn(stablecoinCurrency, code)
}

/**
 * Looks up a code in a rate table; a stablecoin has the rate of its currency while it holds its peg. Undefined if it cannot
 * be quoted.
 */
export function currencyOf(table: RateTable, code: string): Currency | undefined {
  if (table.lost?.has(code)) return undefined
  const perEuro = table.perEuro.get(isStablecoin(code) ? stablecoinCurrency[code] : code)
  const digits = digitsByCode.get(code)
  return perEuro === undefined || digits === undefined ? undefined : { code, perEuro, digits }
}

/** All quotable codes of a table, sorted. */
export function quotableCodes(table: RateTable): readonly string[] {
  return [...digitsByCode.keys()].filter((code) => currencyOf(table, code) !== undefined).sort()
}
