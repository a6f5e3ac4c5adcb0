/**
 * Shares of stocks and funds: `{ asset: 'equity:VTI', units }` with nine fraction digits. The ledger stores them like
 * money, so a position cannot fall below zero. Prices are nano-dollars per share. Rounding to cents happens only
 * here, in functions that name the direction.
 */
import { type Asset, assetDecimals, decimalOf, decimalOfUnits, type Money } from './money.ts'

/** Ledger asset of a stock or fund. Other assets have no colon, so tickers cannot collide. */
type ShareAsset = `equity:${string}`

/** @property units billionths of a share. */
export interface Shares {
  readonly asset: ShareAsset
  readonly units: bigint
}

/** Money or shares, in smallest units. */
export interface Value {
  readonly asset: Asset | ShareAsset
  readonly units: bigint
}

const SHARE_DIGITS = 9

const NANOS = 10n ** 9n
/** A cent in billionths of a share times nano-dollars. */
const CENT = 10n ** 16n

/** @param units billionths of a share. */
export function toShares(symbol: string, units: bigint): Shares {
  return { asset: `equity:${symbol}`, units }
}

/** Cost of a quantity in cents, rounded up. @param price nano-dollars per share. */
export function costRoundedUp(units: bigint, price: bigint): bigint {
  return (units * price + CENT - 1n) / CENT
}

/** Value of a quantity in cents, rounded down. @param price nano-dollars per share. */
export function worthRoundedDown(units: bigint, price: bigint): bigint {
  return (units * price) / CENT
}

/** Maximum shares for an amount in cents. @returns billionths of a share, rounded down. */
export function unitsForDown(cents: bigint, price: bigint): bigint {
  return (cents * CENT) / price
}

/** Minimum shares worth an amount in cents. @returns billionths of a share, rounded up. */
export function unitsForUp(cents: bigint, price: bigint): bigint {
  return (cents * CENT + price - 1n) / price
}

export function minimum(one: bigint, other: bigint): bigint {
  if (one < other) return one
  return other
}

/** @param value billionths of a share times nano-dollars. @returns nano-dollars per share, rounded half up. */
export function averagePrice(value: bigint, units: bigint): bigint {
  return units === 0n ? 0n : (value + units / 2n) / units
}

/** Average price of a quantity from its cost in cents. @returns nano-dollars per share, rounded half up. */
export function averageCost(cents: bigint, units: bigint): bigint {
  return averagePrice(cents * CENT, units)
}

/** Formats a quantity with all nine digits, as orders show it. */
export function quantityText(units: bigint): string {
  return `${units / NANOS}.${(units % NANOS).toString().padStart(SHARE_DIGITS, '0')}`
}

/** Formats a price in USD with at least two digits. */
export function priceText(price: bigint): string {
  const [whole = '0', fraction = ''] = decimalOfUnits(price, 9).split('.')
  return `${whole}.${fraction.padEnd(2, '0')}`
}

export function decimalOfValue(value: Value): string {
  return isMoney(value) ? decimalOf(value) : decimalOfUnits(value.units, SHARE_DIGITS)
}

/** Display name of the asset: `USDC`, or `VTI`. */
export function nameOfValue({ asset }: Pick<Value, 'asset'>): string {
  return asset.replace(/^equity:/, '')
}

function isMoney(value: Value): value is Money {
  return value.asset in assetDecimals
}

/** Parses a validated decimal with at most nine fraction digits. @returns nano-dollars. */
export function parsePrice(decimal: string): bigint {
  const [whole = '0', fraction = ''] = decimal.split('.')
  return BigInt(whole + fraction.padEnd(SHARE_DIGITS, '0'))
}
