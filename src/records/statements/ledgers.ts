/** A statement asset by asset, as banks write statements: one asset is one account. */
import { visibleName, visibleText } from '../../core/base/untrusted-text.ts'
import { type Stablecoin, stablecoinCurrency, stablecoins } from '../../core/money/money.ts'
import type { AccountStatement, Movement } from './read-statement.ts'

/** @property movements of this asset, oldest first. */
export interface AssetLedger {
  readonly asset: string
  readonly opening: string
  readonly closing: string
  readonly movements: readonly Movement[]
}

export function splitByAsset({ balances, movements }: AccountStatement): readonly AssetLedger[] {
  return balances.map(({ asset, opening, closing }) => ({
    asset,
    opening,
    closing,
    movements: movements.filter((movement) => movement.asset === asset),
  }))
}

const currencies: ReadonlySet<string> = new Set(['USD', 'EUR', 'GBP', 'INR'])

/** The ISO 4217 currency that an asset is or stands for; null for shares. */
export function peggedCurrency(asset: string): string | null {
  if (currencies.has(asset)) return asset
  const coin = stablecoins.find((one): one is Stablecoin => one === asset)
  return coin === undefined ? null : stablecoinCurrency[coin]
}

/** The amount with its sign. */
export function signed({ direction, amount }: Pick<Movement, 'direction' | 'amount'>): string {
  return direction === 'out' ? `-${amount}` : amount
}

/** Address or other name of a payee that a contact stands for; null where the title says it. */
export function otherName({
  contact,
  counterparty,
}: Pick<Movement, 'contact' | 'counterparty'>): string | null {
  return contact === null ? null : counterparty
}

/** Payee or payer in one line of visible characters; the way of paying where there is none. */
export function titleOf(
  { contact, counterparty, category }: Pick<Movement, 'contact' | 'counterparty' | 'category'>,
  length: number,
): string {
  const name = visibleText(contact ?? counterparty ?? '')
  return visibleName(name === '' ? category.replaceAll('_', ' ') : name, length)
}

/** A decimal as an integer of its last digit. @param digits at least as many as the decimal has. */
export function toUnits(decimal: string, digits: number): bigint {
  const [whole = '0', fraction = ''] = decimal.replace('-', '').split('.')
  const units = BigInt(whole + fraction.padEnd(digits, '0'))
  return decimal.startsWith('-') ? -units : units
}
