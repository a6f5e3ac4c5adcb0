/** What can be quoted: the stablecoins, and the currencies that the ECB publishes rates for. */
import { assetDecimals, type Stablecoin, stablecoinCurrency } from './money.ts'
import type { RateTable } from './rate-table.ts'

/** Minor units by ISO 4217 where it is not two digits. @see https://www.iso.org/iso-4217-currency-codes.html */
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

const digitsOf: ReadonlyMap<string, number> = new Map([
  ...Object.entries(assetDecimals),
  ...twoDigits.map((code) => [code, 2] as const),
  ...wholeOnly.map((code) => [code, 0] as const),
])

/** One side of a quote. @property perEuro units for 1 EUR, a decimal string. @property digits after the decimal point. */
export interface Currency {
  readonly code: string
  readonly perEuro: string
  readonly digits: number
}

function isStablecoin(code: string): code is Stablecoin {
  return Object.hasOwn(stablecoinCurrency, code)
}

/** What a table says of a code; a stablecoin is priced as the currency it stands for. Undefined where it cannot be quoted. */
export function currencyOf(table: RateTable, code: string): Currency | undefined {
  const perEuro = table.perEuro.get(isStablecoin(code) ? stablecoinCurrency[code] : code)
  const digits = digitsOf.get(code)
  return perEuro === undefined || digits === undefined ? undefined : { code, perEuro, digits }
}

/** Every code that a table can quote, in alphabetical order. */
export function quotableCodes(table: RateTable): readonly string[] {
  return [...digitsOf.keys()].filter((code) => currencyOf(table, code) !== undefined).sort()
}
