/** Validates aggregator offers: numbers must be in range, and the value must be plausible at reference prices. */

import { worthInMicros } from '../../core/money/swap-tokens.ts'
import type { SwapOffer, SwapRequest } from '../../providers/swap-aggregator/port.ts'

/** More than the smallest units of any token in circulation. */
const MAX_UNITS = 10n ** 36n
/** One billion US dollars. */
const MAX_USD_MICROS = 10n ** 15n
const MAX_SECONDS = 7 * 24 * 60 * 60
const MAX_BPS = 10_000
/** Maximum value out relative to value in, in percent: for two pegged tokens, and for all others. */
const MAX_PEGGED_PERCENT = 125n
const MAX_FLOATING_PERCENT = 1_000n
/** Tolerance for rounding: one cent. */
const ROUNDING_MICROS = 10_000n

/** Validates an offer; null when valid. `bad_answer`: numbers out of range. `implausible`: value too high. */
export function validateOffer(offer: SwapOffer, request: SwapRequest): 'bad_answer' | 'implausible' | null {
  return hasPossibleNumbers(offer) ? judgeWorth(offer, request) : 'bad_answer'
}

function hasPossibleNumbers(offer: SwapOffer): boolean {
  const { amountOut, amountOutMin, gasUsdMicros, outUsdMicros, priceImpactBps, durationSec, fees } = offer
  const sums = [gasUsdMicros, outUsdMicros ?? 0n, ...fees.map(({ usdMicros }) => usdMicros)]
  return (
    amountOut > 0n &&
    amountOut <= MAX_UNITS &&
    amountOutMin >= 0n &&
    amountOutMin <= amountOut &&
    sums.every((micros) => micros >= 0n && micros <= MAX_USD_MICROS) &&
    isWithin(durationSec, MAX_SECONDS) &&
    (priceImpactBps === null || isWithin(priceImpactBps, MAX_BPS))
  )
}

function isWithin(value: number, max: number): boolean {
  return Number.isInteger(value) && value >= 0 && value <= max
}

function judgeWorth({ amountOut }: SwapOffer, { from, to, amountIn }: SwapRequest): 'implausible' | null {
  const worthIn = worthInMicros(amountIn, from.decimals, from.usdMicros)
  const worthOut = worthInMicros(amountOut, to.decimals, to.usdMicros)
  const percent = from.isPegged && to.isPegged ? MAX_PEGGED_PERCENT : MAX_FLOATING_PERCENT
  return worthOut * 100n > worthIn * percent + ROUNDING_MICROS * 100n ? 'implausible' : null
}
