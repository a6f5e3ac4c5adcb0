/** Conversion of a deposit into the token of its virtual account. */
import { Failure } from '../../core/failures/failure.ts'
import { convertRoundingDown, crossRateDown } from '../../core/money/cross-rate.ts'
import { type Currency, currencyOf } from '../../core/money/currencies.ts'
import { type Asset, assetDecimals, type Money } from '../../core/money/money.ts'
import type { RateTable } from '../../core/money/rate-table.ts'
import type { VirtualAccount } from './store.ts'

/** Converts a deposit at the current rate, rounded down. Tokens stay as they are. @throws Failure `rates_unavailable`. */
export function convertDeposit(
  money: Money,
  { destination }: Pick<VirtualAccount, 'destination'>,
  table: RateTable,
): Money {
  if (destination === null || destination.token === money.asset) return money
  const asset = destination.token
  const { from, to } = findPair(table, money.asset, asset)
  const rate = crossRateDown(from, to, 0)
  return {
    asset,
    units: convertRoundingDown(money.units, assetDecimals[money.asset], rate, assetDecimals[asset]),
  }
}

/** @throws Failure `rates_unavailable`. */
function findPair(table: RateTable, source: Asset, target: Asset): { from: Currency; to: Currency } {
  const [from, to] = [currencyOf(table, source), currencyOf(table, target)]
  if (from === undefined || to === undefined)
    throw new Failure('rates_unavailable', `There is no rate from ${source} to ${target}.`, {
      retryAfter: 60,
    })
  return { from, to }
}
