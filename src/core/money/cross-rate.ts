/** Exact arithmetic on exchange rates: bigint fractions via EUR. Only functions that name a direction round. */

import type { Currency } from './currencies.ts'
import { decimalOfUnits } from './money.ts'

/** Fraction digits of a rate. */
const RATE_DIGITS = 10

/** A rate in ten-billionths: 1.0705 is 10_705_000_000n. Calculations use exactly the rate that the client sees. */
export type RateUnits = bigint

/** Units of `to` per `from`, less basis points (1/10,000), rounded down: never better than the table. */
export function crossRateDown(from: Currency, to: Currency, lessBps: number): RateUnits {
  const { over, under } = findRatio(from, to)
  return (over * BigInt(10_000 - lessBps)) / (under * 10_000n)
}

/** Units of `to` per `from`, rounded up: never less than the table. */
export function crossRateUp(from: Currency, to: Currency): RateUnits {
  const { over, under } = findRatio(from, to)
  return quotientUp(over, under)
}

/** Converts smallest units, rounded down: never more than the rate. */
export function convertRoundingDown(
  units: bigint,
  fromDigits: number,
  rate: RateUnits,
  toDigits: number,
): bigint {
  return (units * rate * tenTo(toDigits)) / tenTo(fromDigits + RATE_DIGITS)
}

/** Converts smallest units, rounded up: never less than the rate. */
export function convertRoundingUp(
  units: bigint,
  fromDigits: number,
  rate: RateUnits,
  toDigits: number,
): bigint {
  return quotientUp(units * rate * tenTo(toDigits), tenTo(fromDigits + RATE_DIGITS))
}

/** Smallest units of `from` that {@link convertRoundingDown} turns into at least these units of `to`. */
export function sourceRoundingUp(
  units: bigint,
  fromDigits: number,
  rate: RateUnits,
  toDigits: number,
): bigint {
  return quotientUp(units * tenTo(fromDigits + RATE_DIGITS), rate * tenTo(toDigits))
}

export function rateText(rate: RateUnits): string {
  return decimalOfUnits(rate, RATE_DIGITS)
}

/** `to.perEuro / from.perEuro` in rate units, as an exact fraction. */
function findRatio(from: Currency, to: Currency): { over: bigint; under: bigint } {
  const [source, target] = [scaleDecimal(from.perEuro), scaleDecimal(to.perEuro)]
  return {
    over: target.units * tenTo(source.digits + RATE_DIGITS),
    under: source.units * tenTo(target.digits),
  }
}

function scaleDecimal(decimal: string): { units: bigint; digits: number } {
  const [whole = '', fraction = ''] = decimal.split('.')
  return { units: BigInt(whole + fraction), digits: fraction.length }
}

function quotientUp(over: bigint, under: bigint): bigint {
  return (over + under - 1n) / under
}

function tenTo(digits: number): bigint {
  return 10n ** BigInt(digits)
}
