/** Converts money to US dollars for budgets. */

import { Failure } from '../failures/failure.ts'
import { convertRoundingUp, crossRateUp, rateText } from './cross-rate.ts'
import { findCurrency } from './currencies.ts'
import { assetDecimals, type Money } from './money.ts'
import type { RateTable } from './rate-table.ts'

const MICRO_DIGITS = 6

/** @property usdMicros millionths of a US dollar. @property rate USD per unit of the asset, a decimal string. */
export interface UsdValue {
  readonly usdMicros: bigint
  readonly rate: string
}

/**
 * Values money at a table's rates, rounded up at every step, so that budgets are never undercounted. Dollar
 * stablecoins count as dollars. @throws Failure `rates_unavailable` when the table lacks the currency.
 */
export function usdMicrosAt(table: RateTable, { asset, units }: Money): UsdValue {
  if (table.lost?.has(asset)) throw pegLost(asset)
  const [source, dollar] = [findCurrency(table, asset), findCurrency(table, 'USD')]
  if (source === undefined || dollar === undefined)
    throw new Failure('rates_unavailable', `There is no rate from ${asset} to USD.`, { retryAfter: 60 })
  const rate = crossRateUp(source, dollar)
  return {
    usdMicros: convertRoundingUp(units, assetDecimals[asset], rate, MICRO_DIGITS),
    rate: rateText(rate),
  }
}

/** Worth of money in millionths of a dollar, to be shown; null without a rate, and for a stablecoin that lost its peg. */
export function worthInMicros(table: RateTable, money: Money): bigint | null {
  const isPriced = findCurrency(table, money.asset) !== undefined && !table.lost?.has(money.asset)
  return isPriced ? usdMicrosAt(table, money).usdMicros : null
}

/** Error of a stablecoin that is not counted at par. */
function pegLost(asset: string): Failure {
  return new Failure(
    'rates_unavailable',
    `${asset} trades below 0.98 of its currency: it is not counted at par, and nothing is paid with it.`,
    {
      reason: 'peg_lost',
      retryAfter: 300,
      hint: 'Tell the owner. Pay with another asset, or wait until the price is back; nothing was reserved or sent.',
    },
  )
}
