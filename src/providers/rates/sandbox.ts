/**
 * Rates of the sandbox: one real publication, so that quotes are the same on every machine and need no network.
 * `asOf` states its date; in the sandbox it never counts as too old.
 * @see https://www.ecb.europa.eu/stats/policy_and_exchange_rates/euro_reference_exchange_rates
 */
import type { RateTable } from '../../money/rate-table.ts'
import type { Rates } from '../rates.ts'

/** Publication date of the European Central Bank's reference rates: Friday, 28 June 2024. */
const PUBLISHED = '2024-06-28T00:00:00.000Z'

/**
 * Units of each currency for 1 EUR, with the digits printed by the ECB. Bulgaria still had the lev (euro since 2026).
 */
const published = {
  EUR: '1',
  USD: '1.0705',
  JPY: '171.94',
  BGN: '1.9558',
  CZK: '25.025',
  DKK: '7.4575',
  GBP: '0.84638',
  HUF: '395.10',
  PLN: '4.3090',
  RON: '4.9773',
  SEK: '11.3595',
  CHF: '0.9634',
  ISK: '148.90',
  NOK: '11.3965',
  TRY: '35.1868',
  AUD: '1.6079',
  BRL: '5.8915',
  CAD: '1.4670',
  CNY: '7.7748',
  HKD: '8.3594',
  IDR: '17487.21',
  ILS: '4.0200',
  INR: '89.2495',
  KRW: '1474.86',
  MXN: '19.5654',
  MYR: '5.0501',
  NZD: '1.7601',
  PHP: '62.560',
  SGD: '1.4513',
  THB: '39.319',
  ZAR: '19.4970',
} as const

export function createSandboxRates(): Rates {
  const table: RateTable = {
    source: 'ECB euro reference rates of 2024-06-28 (sandbox snapshot)',
    asOf: new Date(PUBLISHED),
    perEuro: new Map(Object.entries(published)),
  }
  return { latest: async () => table }
}
