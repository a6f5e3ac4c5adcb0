/**
 * Shares of stocks and funds: `{ asset: 'equity:VTI', units }` inside, nine digits after the point. The ledger keeps them like
 * money, so that a position can no more fall below zero than a balance. Prices are nano-dollars a share; every rounding to
 * cents happens here, by a function that names its direction.
 */
import { type Asset, assetDecimals, decimalOf, decimalOfUnits, type Money } from './money.ts'

/** A stock or fund as the ledger names it. No asset of ours has a colon, whatever tickers there are. */
type ShareAsset = `equity:${string}`

/** A quantity of one stock or fund. @property units billionths of a share. */
export interface Shares {
  readonly asset: ShareAsset
  readonly units: bigint
}

/** What the ledger can keep: money or shares, in smallest units. */
export interface Value {
  readonly asset: Asset | ShareAsset
  readonly units: bigint
}

/** Digits after the point of a quantity. */
const SHARE_DIGITS = 9

const NANOS = 10n ** 9n
/** A cent in billionths of a share times nano-dollars. */
const CENT = 10n ** 16n

/** A quantity of a symbol. @param units billionths of a share. */
export function sharesOf(symbol: string, units: bigint): Shares {
  return { asset: `equity:${symbol}`, units }
}

/** What a quantity costs a buyer: whole cents, rounded up. @param price nano-dollars a share. @returns cents. */
export function costRoundedUp(units: bigint, price: bigint): bigint {
  return (units * price + CENT - 1n) / CENT
}

/** What a quantity is worth: whole cents, rounded down. @param price nano-dollars a share. @returns cents. */
export function worthRoundedDown(units: bigint, price: bigint): bigint {
  return (units * price) / CENT
}

/** The most shares that cents buy. @returns billionths of a share, rounded down. */
export function unitsForDown(cents: bigint, price: bigint): bigint {
  return (cents * CENT) / price
}

/** The fewest shares that are worth these cents. @returns billionths of a share, rounded up. */
export function unitsForUp(cents: bigint, price: bigint): bigint {
  return (cents * CENT + price - 1n) / price
}

/** The lesser of two. */
export function least(one: bigint, other: bigint): bigint {
  if (one < other) return one
  return other
}

/** The average price of a quantity. @param value billionths of a share times nano-dollars. @returns nano-dollars, rounded half up. */
export function averagePrice(value: bigint, units: bigint): bigint {
  return units === 0n ? 0n : (value + units / 2n) / units
}

/** The average price of a quantity that cost so many cents. @returns nano-dollars, rounded half up. */
export function averageCost(cents: bigint, units: bigint): bigint {
  return averagePrice(cents * CENT, units)
}

/** A quantity with all nine digits, as orders show it. */
export function quantityText(units: bigint): string {
  return `${units / NANOS}.${(units % NANOS).toString().padStart(SHARE_DIGITS, '0')}`
}

/** A price as a decimal string of USD with two digits or as many as it needs. */
export function priceText(price: bigint): string {
  const [whole = '0', fraction = ''] = decimalOfUnits(price, 9).split('.')
  return `${whole}.${fraction.padEnd(2, '0')}`
}

/** The decimal string of money or shares. */
export function decimalOfValue(value: Value): string {
  return isMoney(value) ? decimalOf(value) : decimalOfUnits(value.units, SHARE_DIGITS)
}

/** What a value is counted in, for people: `USDC`, or `VTI`. */
export function nameOfValue({ asset }: Pick<Value, 'asset'>): string {
  return asset.replace(/^equity:/, '')
}

function isMoney(value: Value): value is Money {
  return value.asset in assetDecimals
}

/** The price of a decimal's text that was judged before and has at most nine fraction digits. @returns nano-dollars. */
export function priceOf(decimal: string): bigint {
  const [whole = '0', fraction = ''] = decimal.split('.')
  return BigInt(whole + fraction.padEnd(SHARE_DIGITS, '0'))
}
