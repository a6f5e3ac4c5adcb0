/** The portfolio: cash, holdings at the last prices, dividends and performance. */
import { balances } from '../../books/ledger/balances.ts'
import { worthRoundedDown } from '../../core/money/shares.ts'
import type { Broker } from '../../providers/broker/port.ts'
import type { Database } from '../../storage/database.ts'
import { type DividendSummary, showDividends } from './dividends.ts'
import { readHistory } from './history.ts'
import { BANK } from './order.ts'
import { computePerformance, type Performance, performanceTimes, type Timeframe } from './performance.ts'
import { readPositions } from './positions.ts'

/** A position at the last price. Cents, billionths of a share, nano-dollars. */
export interface Holding {
  readonly symbol: string
  readonly name: string
  readonly qty: bigint
  readonly cost: bigint
  readonly price: bigint
  readonly marketValue: bigint
}

/** A portfolio. @property cash including holds for open orders. @property buyingPower excluding them. */
export interface Portfolio {
  readonly cash: bigint
  readonly buyingPower: bigint
  readonly equity: bigint
  readonly holdings: readonly Holding[]
  readonly dividends: readonly DividendSummary[]
  readonly performance: Performance
}

/** @throws Failure `provider_unavailable` when there are no prices. */
export async function showPortfolio(
  { database, broker }: { database: Database; broker: Broker },
  { accountId, timeframe, now }: { accountId: string; timeframe: Timeframe; now: Date },
): Promise<Portfolio> {
  const [booked, positions, history] = await Promise.all([
    balances(database, accountId),
    readPositions(database, accountId),
    readHistory(database, accountId),
  ])
  const bank = booked.find(({ place, asset }) => place === BANK && asset === 'USD')
  const moments = performanceTimes(history, timeframe, now)
  const traded = [...new Set(history.shares.map(({ symbol }) => symbol))]
  const [quotes, prices, dividends, instruments] = await Promise.all([
    broker.quotes(positions.map(({ symbol }) => symbol)),
    broker.history(traded, moments.all),
    showDividends({ database, broker }, { accountId, positions, now }),
    Promise.all(positions.map(({ symbol }) => broker.instrument(symbol))),
  ])
  const holdings = positions.map((position, index) => {
    const price = quotes.get(position.symbol) ?? 0n
    const marketValue = worthRoundedDown(position.qty, price)
    return { ...position, name: instruments[index]?.name ?? position.symbol, price, marketValue }
  })
  const cash = (bank?.available ?? 0n) + (bank?.held ?? 0n)
  return {
    cash,
    buyingPower: bank?.available ?? 0n,
    equity: holdings.reduce((sum, { marketValue }) => sum + marketValue, cash),
    holdings,
    dividends,
    performance: computePerformance(history, moments, prices),
  }
}
