import { z } from 'zod'
import { untrustedText } from '../../src/base/untrusted-text.ts'
import { PERCENT_DIGITS, timeframes } from '../../src/investing/performance.ts'
import { type Holding, showPortfolio } from '../../src/investing/show-portfolio.ts'
import { callerOf } from '../../src/kernel/context.ts'
import { defineTool } from '../../src/kernel/tool.ts'
import { decimalOf, decimalOfUnits } from '../../src/money/money.ts'
import { averageCost, priceText, quantityText } from '../../src/money/shares.ts'

const usd = (units: bigint) => decimalOf({ asset: 'USD', units })
const percent = (units: bigint) => decimalOfUnits(units, PERCENT_DIGITS)

const holding = z.strictObject({
  symbol: z.string().describe('Ticker.'),
  name: untrustedText('Name of the stock or fund.'),
  qty: z.string().describe('Shares with nine decimals, including those held by open sells.'),
  avgEntryPrice: z.string().describe('Average cost in USD per share.'),
  costBasis: z.string().describe('Total cost in USD.'),
  currentPrice: z.string().describe('Last price in USD per share.'),
  marketValue: z.string().describe('Current value in USD.'),
  unrealizedPl: z.string().describe('Gain or loss, in USD.'),
  unrealizedPlPct: z.string().describe('Gain or loss, in percent of the cost.'),
})

const dividend = z.strictObject({
  symbol: z.string().describe('Ticker.'),
  qty: z.string().describe('Entitled shares, with nine decimals.'),
  perShare: z.string().describe('USD per share.'),
  amount: z.string().describe('Total in USD.'),
  status: z.enum(['announced', 'paid']).describe('`announced`: not paid yet.'),
  payDate: z.string().describe('Pay date, YYYY-MM-DD, UTC.'),
})

const performance = z.strictObject({
  timeframe: z.enum(timeframes).describe('Window of the series.'),
  baseValue: z.string().describe('Equity at the start of the window, in USD.'),
  timestamp: z.array(z.string()).describe('Times of the series, ISO 8601 UTC.'),
  equity: z.array(z.string()).describe('Cash and holdings at each time, in USD.'),
  profitLoss: z
    .array(z.string())
    .describe('Gain or loss since the start without deposits and withdrawals, in USD.'),
  profitLossPct: z.array(z.string()).describe('Time-weighted return since the start, in percent.'),
})

export default defineTool({
  name: 'investing.portfolio',
  title: 'Portfolio',
  summary: 'Read USD cash, holdings and dividends of the portfolio, and with `series` its performance.',
  description:
    'Use it before an order, and to report on investments. Free. Amounts are decimal strings of USD; `buyingPower` is the cash that can be spent now. Ask for `series` only to draw or compare: it is long. Returns are time-weighted: deposits and withdrawals do not count.',
  route: 'GET /api/investing/portfolio',
  who: 'account',
  scopes: ['investing:read'],
  effect: 'read',
  mcp: true,
  input: z.strictObject({
    timeframe: z
      .enum(timeframes)
      .default('1M')
      .describe('Window of the performance series; `1M` by default.'),
  }),
  output: z.strictObject({
    asOf: z.string().describe('Time of the valuation, ISO 8601 UTC.'),
    currency: z.literal('USD').describe('Currency of all amounts.'),
    cash: z.string().describe('USD cash, including holds of open buys.'),
    buyingPower: z.string().describe('USD cash that can be spent now.'),
    equity: z.string().describe('Total of cash and holdings, in USD.'),
    holdings: z.array(holding).describe('Holdings by symbol.'),
    dividends: z.array(dividend).describe('Announced and paid dividends, newest first.'),
    performance: performance.describe('Equity over time.'),
  }),
  failures: ['provider_unavailable'],
  example: { timeframe: '1W' },
  run: async (context, { timeframe }) => {
    const accountId = callerOf(context).account.id
    const portfolio = await showPortfolio(context, { accountId, timeframe, now: context.now })
    const { performance: series } = portfolio
    return {
      asOf: context.now.toISOString(),
      currency: 'USD' as const,
      cash: usd(portfolio.cash),
      buyingPower: usd(portfolio.buyingPower),
      equity: usd(portfolio.equity),
      holdings: portfolio.holdings.map(viewHolding),
      dividends: portfolio.dividends.map(({ qty, perShare, amount, ...shown }) => ({
        ...shown,
        qty: quantityText(qty),
        perShare: priceText(perShare),
        amount: usd(amount),
      })),
      performance: {
        timeframe,
        baseValue: usd(series.baseValue),
        timestamp: series.timestamp.map((at) => at.toISOString()),
        equity: series.equity.map(usd),
        profitLoss: series.profitLoss.map(usd),
        profitLossPct: series.profitLossPct.map(percent),
      },
    }
  },
})

function viewHolding({ symbol, name, qty, cost, price, marketValue }: Holding): z.input<typeof holding> {
  const gain = marketValue - cost
  return {
    symbol,
    name,
    qty: quantityText(qty),
    avgEntryPrice: priceText(averageCost(cost, qty)),
    costBasis: usd(cost),
    currentPrice: priceText(price),
    marketValue: usd(marketValue),
    unrealizedPl: usd(gain),
    unrealizedPlPct: percent(cost === 0n ? 0n : (gain * 100n * 10n ** BigInt(PERCENT_DIGITS)) / cost),
  }
}
