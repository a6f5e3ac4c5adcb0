/** Amounts in words. Decimal strings in, text out: no amount ever becomes a binary fraction. */
import { digits } from './digits.ts'

type Decimal = Intl.StringNumericLiteral

const places = { ...digits, minimumFractionDigits: 2, maximumFractionDigits: 18 } as const

/** True for a decimal string as the API writes them. */
function isDecimal(text: string): text is Decimal {
  return /^-?\d+(\.\d+)?$/.test(text)
}

/** True for an amount as people enter it: digits, a point, at most six decimals. Commas and exponents are refused. */
export function isAmount(text: string): boolean {
  return /^\d{1,12}(\.\d{1,6})?$/.test(text)
}

/** `1234.5` → `1,234.50` in the reader's format. Never rounds. Text that is no decimal is returned as it is. */
export function formatDecimal(amount: string): string {
  return isDecimal(amount) ? new Intl.NumberFormat(undefined, places).format(amount) : amount
}

const usd = { ...digits, style: 'currency', currency: 'USD', currencyDisplay: 'narrowSymbol' } as const

/** `3.5` → `$3.50`, rounded half up to cents. Less than a cent keeps its digits: a spend never reads as nothing. */
export function formatUsd(amount: string): string {
  if (!isDecimal(amount)) return amount
  const isBelowCent = /^-?0*\.00\d*[1-9]/.test(amount)
  return isBelowCent ? formatUsdExactly(amount) : new Intl.NumberFormat(undefined, usd).format(amount)
}

/** `-3.5` → `−$3.50`, `3.5` → `+$3.50`; nothing has no sign. */
export function formatSignedUsd(amount: string): string {
  const size = formatUsd(amount.replace(/^-/, ''))
  if (!isDecimal(amount) || /^-?0*(\.0*)?$/.test(amount)) return size
  return `${amount.startsWith('-') ? '\u2212' : '+'}${size}`
}

/** `-0.6603` → `−0.66%`, `6.7` → `+6.70%`, rounded half up to hundredths. */
export function formatSignedPercent(percent: string): string {
  if (!isDecimal(percent)) return percent
  const format = {
    ...digits,
    signDisplay: 'exceptZero',
    minimumFractionDigits: 2,
    maximumFractionDigits: 2,
  } as const
  return `${new Intl.NumberFormat(undefined, format).format(percent).replace('-', '\u2212')}%`
}

/** `10.001` → `$10.001`. Limits and what breaks them are never rounded, or both would read the same. */
export function formatUsdExactly(amount: string): string {
  if (!isDecimal(amount)) return amount
  return new Intl.NumberFormat(undefined, { ...usd, ...places }).format(amount)
}

/** The major and minor part of a USD amount: `$2,935` and `.14`, so that they can be weighted. */
export function splitUsd(amount: string): { readonly major: string; readonly minor: string } {
  if (!isDecimal(amount)) return { major: amount, minor: '' }
  const parts = new Intl.NumberFormat(undefined, usd).formatToParts(amount)
  const at = parts.findIndex(({ type }) => type === 'decimal')
  const text = (from: number, to: number) =>
    parts
      .slice(from, to)
      .map(({ value }) => value)
      .join('')
  return at === -1
    ? { major: text(0, parts.length), minor: '' }
    : { major: text(0, at), minor: text(at, parts.length) }
}

/** Adds decimal strings exactly. */
export function addDecimals(...amounts: readonly string[]): string {
  const scale = Math.max(0, ...amounts.map(countDecimals))
  const sum = amounts.reduce((total, amount) => total + toUnits(amount, scale), 0n)
  return formatUnits(sum, scale)
}

interface Worth {
  readonly amount: string
  readonly asset: string
  /** Null without a rate. */
  readonly usd: string | null
}

/** Adds up in dollars. Amounts without a rate are added up by asset instead, so that no sum leaves them out silently. */
export function sumWorth(amounts: readonly Worth[]): {
  readonly usd: string
  readonly unpriced: readonly { readonly amount: string; readonly asset: string }[]
} {
  const unpriced = new Map<string, string>()
  for (const { amount, asset, usd } of amounts)
    if (usd === null && compareDecimals(amount, '0') > 0)
      unpriced.set(asset, addDecimals(unpriced.get(asset) ?? '0', amount))
  return {
    usd: addDecimals('0', ...amounts.flatMap(({ usd }) => (usd === null ? [] : [usd]))),
    unpriced: [...unpriced].map(([asset, amount]) => ({ amount, asset })),
  }
}

/** `1` minus `0.4`, exactly. */
export function subtractDecimals(from: string, amount: string): string {
  const scale = Math.max(countDecimals(from), countDecimals(amount))
  return formatUnits(toUnits(from, scale) - toUnits(amount, scale), scale)
}

/** -1, 0 or 1. */
export function compareDecimals(one: string, other: string): number {
  const scale = Math.max(countDecimals(one), countDecimals(other))
  const difference = toUnits(one, scale) - toUnits(other, scale)
  return difference === 0n ? 0 : difference > 0n ? 1 : -1
}

/** The part of a worth that belongs to a part of the amount, rounded down to cents: 10 of 40 that are worth 44 are 11. */
export function worthOfPart(worth: string, part: string, whole: string): string {
  const scale = Math.max(countDecimals(part), countDecimals(whole))
  const all = toUnits(whole, scale)
  return all <= 0n ? '0' : formatUnits((toUnits(worth, 2) * toUnits(part, scale)) / all, 2)
}

/** Share of the whole in percent with two decimals, 0 to 100, for the width of a bar. */
export function findShare(part: string, whole: string): number {
  const scale = Math.max(countDecimals(part), countDecimals(whole))
  const all = toUnits(whole, scale)
  if (all <= 0n) return 0
  const share = Number((toUnits(part, scale) * 10_000n) / all) / 100
  return Math.min(Math.max(share, 0), 100)
}

function countDecimals(amount: string): number {
  return amount.split('.')[1]?.length ?? 0
}

function toUnits(amount: string, scale: number): bigint {
  const [whole = '0', fraction = ''] = amount.replace('-', '').split('.')
  const units = BigInt(whole + fraction.slice(0, scale).padEnd(scale, '0'))
  return amount.startsWith('-') ? -units : units
}

function formatUnits(units: bigint, scale: number): string {
  const digits = (units < 0n ? -units : units).toString().padStart(scale + 1, '0')
  const whole = digits.slice(0, digits.length - scale)
  const fraction = scale === 0 ? '' : `.${digits.slice(-scale)}`
  return `${units < 0n ? '-' : ''}${whole}${fraction}`
}
