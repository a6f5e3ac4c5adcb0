/**
 * Money: `{ asset, units }` inside, a decimal string with its asset beside it outside. Only this file converts.
 * Nothing is ever rounded on the way in; what does not fit the asset is refused.
 */
import { z } from 'zod'

/** Digits after the decimal point of each asset: stablecoins as their contracts say, currencies by ISO 4217. */
export const assetDecimals = { USDC: 6, USDT: 6, EURC: 6, PYUSD: 6, USD: 2, EUR: 2, GBP: 2, INR: 2 } as const

/** What money can be denominated in. */
export type Asset = keyof typeof assetDecimals

/** The assets that live on a chain. */
export const stablecoins = ['USDC', 'USDT', 'EURC', 'PYUSD'] as const

/** A stablecoin by its symbol. */
export type Stablecoin = (typeof stablecoins)[number]

/** The ISO 4217 currency that a stablecoin stands for. */
export const stablecoinCurrency: Record<Stablecoin, 'USD' | 'EUR'> = {
  USDC: 'USD',
  USDT: 'USD',
  EURC: 'EUR',
  PYUSD: 'USD',
}

/** An amount of one asset. @property units smallest units: 1 USDC is 1_000_000n, 1 USD is 100n. */
export interface Money {
  readonly asset: Asset
  readonly units: bigint
}

/** The largest amount that is taken in one request, in whole units of the asset. */
const LARGEST_WHOLE = 10n ** 12n

const DECIMAL = /^(0|[1-9]\d*)(?:\.(\d+))?$/

/**
 * A number of a JSON document whose text a JavaScript number would not give back (`1e2`, `1.10`, twenty digits): kept as
 * written, so that an amount is judged by what the client wrote.
 */
export interface NumberText {
  readonly isLosslessNumber: true
  toString(): string
}

function isNumberText(value: unknown): value is NumberText {
  return (
    typeof value === 'object' &&
    value !== null &&
    'isLosslessNumber' in value &&
    value.isLosslessNumber === true &&
    // A client may name its own members so; it cannot send a function.
    typeof value.toString === 'function'
  )
}

/**
 * An amount on the wire: a decimal string or a JSON number, read as a decimal and never as a float. Decodes to the
 * decimal's text; refuses a sign, zero and more than 10^12. A number may have an exponent, a string none.
 */
export const decimalAmount = z
  .preprocess(
    (value) => (typeof value === 'number' || isNumberText(value) ? plainDecimal(value.toString()) : value),
    z.union(
      [
        z.string().max(64).meta({ pattern: '^(0|[1-9]\\d*)(\\.\\d+)?$' }),
        z.number().meta({ exclusiveMinimum: 0, maximum: 1e12 }),
      ],
      { error: 'must be a decimal string or a number' },
    ),
  )
  .transform((value) => value.toString())
  .superRefine(refuseBadDecimal)

const WITH_EXPONENT = /^(-?)(\d+)(?:\.(\d+))?[eE]([+-]?\d{1,6})$/
/** Beyond it no amount is one that we take. */
const MAX_EXPONENT = 64

/** A number's text without its exponent: the same value, digit for digit (`1e-05` is what Python writes). */
function plainDecimal(text: string): string {
  const [, sign = '', whole = '', fraction = '', power = ''] = WITH_EXPONENT.exec(text) ?? []
  const exponent = Number(power)
  if (whole === '' || Math.abs(exponent) > MAX_EXPONENT) return text
  const digits = `${'0'.repeat(MAX_EXPONENT)}${whole}${fraction}${'0'.repeat(MAX_EXPONENT)}`
  const point = MAX_EXPONENT + whole.length + exponent
  const plainWhole = digits.slice(0, point).replace(/^0+(?=\d)/, '')
  const plainFraction = digits.slice(point).replace(/0+$/, '')
  return `${sign}${plainWhole}${plainFraction === '' ? '' : `.${plainFraction}`}`
}

function refuseBadDecimal(text: string, context: z.core.$RefinementCtx<string>): void {
  const wrong = wrongWith(text)
  // What is no decimal is not judged any further: the checks of the whole input take it for one.
  if (wrong !== undefined) context.addIssue({ code: 'custom', message: wrong, continue: false })
}

function wrongWith(text: string): string | undefined {
  const match = DECIMAL.exec(text)
  if (match === null) return 'must be a plain decimal above zero, such as 12.50: no sign, no exponent'
  const [, whole = '0', fraction = ''] = match
  if (/^0*$/.test(whole + fraction)) return 'must be above zero'
  const isOver = BigInt(whole) > LARGEST_WHOLE || (BigInt(whole) === LARGEST_WHOLE && /[1-9]/.test(fraction))
  return isOver ? 'must not be over 1000000000000' : undefined
}

/** Why a decimal does not fit an asset, or undefined where it does. @param decimal as {@link decimalAmount} decodes it. */
export function amountMismatch(decimal: string, asset: Asset): string | undefined {
  const fraction = DECIMAL.exec(decimal)?.[2] ?? ''
  const digits = assetDecimals[asset]
  return fraction.length > digits
    ? `has ${fraction.length} fraction digits; ${asset} has ${digits} (amounts are refused, never rounded)`
    : undefined
}

/**
 * Money from a decimal's text that was already judged by {@link decimalAmount} and {@link paymentMismatch}.
 * @throws RangeError where the text does not fit the asset: a caller that did not judge it has a bug.
 */
export function moneyOf(asset: Asset, decimal: string): Money {
  const match = DECIMAL.exec(decimal)
  const misfit = match === null ? 'is not a decimal' : amountMismatch(decimal, asset)
  if (match === null || misfit !== undefined) throw new RangeError(`amount ${misfit}`)
  const [, whole = '0', fraction = ''] = match
  return { asset, units: BigInt(whole + fraction.padEnd(assetDecimals[asset], '0')) }
}

/** The decimal string of money, without needless zeros: 1_500_000n units of USDC are `1.5`. */
export function decimalOf({ asset, units }: Money): string {
  return decimalOfUnits(units, assetDecimals[asset])
}

/** The decimal string of a count of units that has this many fraction digits. */
export function decimalOfUnits(units: bigint, digits: number): string {
  const sign = units < 0n ? '-' : ''
  const text = (units < 0n ? -units : units).toString().padStart(digits + 1, '0')
  const fraction = digits === 0 ? '' : text.slice(-digits).replace(/0+$/, '')
  return `${sign}${text.slice(0, text.length - digits)}${fraction === '' ? '' : `.${fraction}`}`
}
