/**
 * Payments: products sold over x402, starting with the FX quote. May import the base, ports, the ledger and policies.
 * A quote's result is exactly its amount times its stated rate, rounded down to the target's precision; the rate
 * includes the spread. No floating-point arithmetic.
 */

import { Failure } from '../../../core/failures/failure.ts'
import { convertRoundingDown, crossRateDown, rateText } from '../../../core/money/cross-rate.ts'
import { type Currency, currencyOf, quotableCodes } from '../../../core/money/currencies.ts'
import { decimalOfUnits } from '../../../core/money/money.ts'
import type { RateTable } from '../../../core/money/rate-table.ts'
import type { Rates } from '../../../providers/rates/port.ts'

/** Lifetime of a quote. */
const QUOTE_MS = 60_000

const DECIMAL = /^(0|[1-9]\d*)(?:\.(\d+))?$/

/** Request for a conversion quote. @property amount decimal string in `from`. */
export interface FxRequest {
  readonly from: string
  readonly to: string
  readonly amount: string
}

/** The quote; the caller adds the `quoteId`. Amounts and the rate are decimal strings, times ISO 8601 UTC. */
export interface FxQuote extends FxRequest {
  /** Units of `to` per unit of `from` after the spread; up to 10 fraction digits. */
  readonly rate: string
  readonly result: string
  /** Spread below the reference rate, in basis points (1/10,000). */
  readonly spreadBps: number
  readonly source: string
  readonly asOf: string
  /** Age of the reference rates when quoted, in seconds. */
  readonly ageSec: number
  readonly expiresAt: string
}

/**
 * Quotes an exchange at the newest reference rates, crossed through EUR.
 * @param spreadBps basis points deducted from the rate; 25 is 0.25 %.
 * @throws Failure `pair_not_supported`, `invalid_request` (amount does not fit or is worth nothing),
 * `rates_unavailable`.
 */
export async function quoteFx(
  { rates, spreadBps = 25 }: { readonly rates: Rates; readonly spreadBps?: number },
  { from, to, amount }: FxRequest,
  now: Date,
): Promise<FxQuote> {
  const table = await rates.latest(now)
  const [source, target] = findPair(table, from, to)
  const units = parseUnits(amount, source)
  const rate = crossRateDown(source, target, spreadBps)
  const resultUnits = convertRoundingDown(units, source.digits, rate, target.digits)
  if (resultUnits === 0n)
    throw amountFailure(`${amount} ${from} is worth less than the smallest unit of ${to}`)
  return {
    from,
    to,
    amount: decimalOfUnits(units, source.digits),
    rate: rateText(rate),
    result: decimalOfUnits(resultUnits, target.digits),
    spreadBps,
    source: table.source,
    asOf: table.asOf.toISOString(),
    ageSec: toAgeSeconds(table, now),
    expiresAt: new Date(now.getTime() + QUOTE_MS).toISOString(),
  }
}

/** Age of the reference rates, in whole seconds; 0 for rates that are dated ahead of the clock. */
export function toAgeSeconds({ asOf }: Pick<RateTable, 'asOf'>, now: Date): number {
  return Math.max(0, Math.floor((now.getTime() - asOf.getTime()) / 1000))
}

function findPair(table: RateTable, from: string, to: string): [Currency, Currency] {
  const [source, target] = [currencyOf(table, from), currencyOf(table, to)]
  if (source !== undefined && target !== undefined && from !== to) return [source, target]
  const hint = `Supported, in any pair of two different codes: ${quotableCodes(table).join(', ')}.`
  throw new Failure('pair_not_supported', `There is no rate from ${from} to ${to}.`, { hint })
}

function parseUnits(amount: string, { code, digits }: Currency): bigint {
  const match = DECIMAL.exec(amount)
  if (match === null) throw amountFailure(`${amount} is not a plain decimal`)
  const [, whole = '0', fraction = ''] = match
  if (fraction.length > digits)
    throw amountFailure(`${amount} has ${fraction.length} fraction digits; ${code} has ${digits}`)
  return BigInt(whole + fraction.padEnd(digits, '0'))
}

function amountFailure(message: string): Failure {
  const hint = 'Amounts are refused, never rounded.'
  return new Failure('invalid_request', `The amount cannot be quoted: ${message}.`, {
    issues: [{ path: 'amount', message }],
    hint,
  })
}
