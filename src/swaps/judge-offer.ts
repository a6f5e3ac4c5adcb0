/** The one place where an aggregator's offer is believed or not: numbers that can be, and a worth that prices can explain. */

import { worthInMicros } from '../money/swap-tokens.ts'
import type { SwapOffer, SwapRequest } from '../providers/swap-aggregator.ts'

/** More than any token has smallest units in circulation. */
const MAX_UNITS = 10n ** 36n
/** A billion dollars. */
const MAX_USD_MICROS = 10n ** 15n
const MAX_SECONDS = 7 * 24 * 60 * 60
const MAX_BPS = 10_000
/** How far the worth of what comes out may exceed that of what goes in, in percent: two tokens that follow a currency, or others. */
const MAX_PEGGED_PERCENT = 125n
const MAX_FLOATING_PERCENT = 1_000n
/** Amounts of millionths round to anything: a cent. */
const ROUNDING_MICROS = 10_000n

/** Why an offer is not believed; null where it fits. `bad_answer`: no such numbers. `implausible`: worth too much. */
export function judgeOffer(offer: SwapOffer, request: SwapRequest): 'bad_answer' | 'implausible' | null {
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

function isWithin(value: number, most: number): boolean {
  return Number.isInteger(value) && value >= 0 && value <= most
}

function judgeWorth({ amountOut }: SwapOffer, { from, to, amountIn }: SwapRequest): 'implausible' | null {
  const worthIn = worthInMicros(amountIn, from.decimals, from.usdMicros)
  const worthOut = worthInMicros(amountOut, to.decimals, to.usdMicros)
  const percent = from.isPegged && to.isPegged ? MAX_PEGGED_PERCENT : MAX_FLOATING_PERCENT
  return worthOut * 100n > worthIn * percent + ROUNDING_MICROS * 100n ? 'implausible' : null
}
