/**
 * Money: `{ asset, units }` internally, a decimal string with its asset on the wire. Only this file converts. Input
 * is never rounded; amounts that do not fit the asset are rejected.
 */
import { z } from 'zod'

/** Fraction digits of each asset: stablecoins by their contracts, currencies by ISO 4217. */
export const assetDecimals = { USDC: 6, USDT: 6, EURC: 6, PYUSD: 6, USD: 2, EUR: 2, GBP: 2, INR: 2 } as const

export type Asset = keyof typeof assetDecimals

/** Assets that exist on a chain. */
export const stablecoins = ['USDC', 'USDT', 'EURC', 'PYUSD'] as const

export type Stablecoin = (typeof stablecoins)[number]

/** The ISO 4217 currency of each stablecoin. */
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

/** Maximum amount per request, in whole units of the asset. */
const MAX_WHOLE_UNITS = 10n ** 12n

const DECIMAL = /^(0|[1-9]\d*)(?:\.(\d+))?$/

/**
 * A JSON number that a JavaScript number would print differently (`1e2`, `1.10`, twenty digits), kept as written so
 * that the original text is validated.
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
    // A client can send a member of this name, but not a function.
    typeof value.toString === 'function'
  )
}

/**
 * An amount on the wire: a decimal string or a JSON number, parsed as a decimal, never as a float. Decodes to the
 * decimal text; rejects signs, zero and amounts over 10^12. A number may have an exponent, a string may not.
 */
export const decimalAmount = z
  .preprocess(
    (value) => (typeof value === 'number' || isNumberText(value) ? plainDecimal(value.toString()) : value),
    z.union(
      [
        z.string().max(64, { abort: true }).meta({ pattern: '^(0|[1-9]\\d*)(\\.\\d+)?$' }),
        z.number().meta({ exclusiveMinimum: 0, maximum: 1e12 }),
      ],
      { error: 'must be a decimal string or a number' },
    ),
  )
  .transform((value) => value.toString())
  .superRefine(refuseBadDecimal)
  .meta({ id: 'Amount' })

const WITH_EXPONENT = /^(-?)(\d+)(?:\.(\d+))?[eE]([+-]?\d{1,6})$/
/** Larger exponents are always out of range. */
const MAX_EXPONENT = 64

/** Expands an exponent without changing the value (Python writes `1e-05`). */
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
  const message = decimalError(text)
  // Stops here, because later checks assume a valid decimal.
  if (message !== undefined) context.addIssue({ code: 'custom', message: message, continue: false })
}

function decimalError(text: string): string | undefined {
  const match = DECIMAL.exec(text)
  if (match === null) return 'must be a plain decimal above zero, such as 12.50: no sign, no exponent'
  const [, whole = '0', fraction = ''] = match
  if (/^0*$/.test(whole + fraction)) return 'must be above zero'
  const isOver =
    BigInt(whole) > MAX_WHOLE_UNITS || (BigInt(whole) === MAX_WHOLE_UNITS && /[1-9]/.test(fraction))
  return isOver ? 'must not be over 1000000000000' : undefined
}

/** Returns why a decimal does not fit an asset, or undefined. @param decimal output of {@link decimalAmount}. */
export function amountMismatch(decimal: string, asset: Asset): string | undefined {
  const fraction = DECIMAL.exec(decimal)?.[2] ?? ''
  const digits = assetDecimals[asset]
  return fraction.length > digits
    ? `has ${fraction.length} fraction digits; ${asset} has ${digits} (amounts are rejected, not rounded)`
    : undefined
}

/**
 * Converts a decimal that {@link decimalAmount} and {@link amountMismatch} have validated. @throws RangeError when
 * the text does not fit the asset, which is a bug in the caller.
 */
export function toMoney(asset: Asset, decimal: string): Money {
  const match = DECIMAL.exec(decimal)
  const mismatch = match === null ? 'is not a decimal' : amountMismatch(decimal, asset)
  if (match === null || mismatch !== undefined) throw new RangeError(`amount ${mismatch}`)
  const [, whole = '0', fraction = ''] = match
  return { asset, units: BigInt(whole + fraction.padEnd(assetDecimals[asset], '0')) }
}

/** Formats money without trailing zeros: 1_500_000n units of USDC are `1.5`. */
export function toDecimal({ asset, units }: Money): string {
  return formatUnits(units, assetDecimals[asset])
}

/** Formats units with this many fraction digits. */
export function formatUnits(units: bigint, digits: number): string {
  const sign = units < 0n ? '-' : ''
  const text = (units < 0n ? -units : units).toString().padStart(digits + 1, '0')
  const fraction = digits === 0 ? '' : text.slice(-digits).replace(/0+$/, '')
  return `${sign}${text.slice(0, text.length - digits)}${fraction === '' ? '' : `.${fraction}`}`
}
