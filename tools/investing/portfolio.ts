import { z } from 'zod'
import { untrustedText } from '../../src/core/base/untrusted-text.ts'
import { formatUnits, toDecimal } from '../../src/core/money/money.ts'
import { averageCost, priceText, quantityText } from '../../src/core/money/shares.ts'
import { requireCaller } from '../../src/kernel/context.ts'
import { defineTool } from '../../src/kernel/tool.ts'
import { PERCENT_DIGITS, timeframes } from '../../src/rails/investing/performance.ts'
import { type Holding, showPortfolio } from '../../src/rails/investing/show-portfolio.ts'

const usd = (units: bigint) => toDecimal({ asset: 'USD', units })
const percent = (units: bigint) => formatUnits(units, PERCENT_DIGITS)

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
holding.register(z.globalRegistry, { id: 'Holding' })

const dividend = z.strictObject({
  symbol: z.string().describe('Ticker.'),
  qty: z.string().describe('Entitled shares, with nine decimals.'),
  perShare: z.string().describe('USD per share.'),
  amount: z.string().describe('Total in USD.'),
  status: z.enum(['announced', 'paid']).describe('`announced`: not paid yet.'),
  payDate: z.string().describe('Pay date, YYYY-MM-DD, UTC.'),
})
dividend.register(z.globalRegistry, { id: 'Dividend' })

const series = z.strictObject({
  timestamp: z.array(z.string()).describe('Times of the series, ISO 8601 UTC.'),
  equity: z.array(z.string()).describe('Cash and holdings at each time, in USD.'),
  profitLoss: z
    .array(z.string())
    .describe('Gain or loss since the start without deposits and withdrawals, in USD.'),
  profitLossPct: z.array(z.string()).describe('Time-weighted return since the start, in percent.'),
})

const performance = z.strictObject({
  timeframe: z.enum(timeframes).describe('Window of the performance.'),
  baseValue: z.string().describe('Equity at the start of the window, in USD.'),
  profitLoss: z.string().describe('Gain or loss of the window without deposits and withdrawals, in USD.'),
  profitLossPct: z.string().describe('Time-weighted return of the window, in percent.'),
  series: series.nullable().describe('Values over time; null unless `series` was true.'),
})
performance.register(z.globalRegistry, { id: 'Performance' })

export default defineTool({
  name: 'investing.portfolio',
  title: 'Portfolio',
  summary: 'Read USD cash, holdings and dividends of the portfolio, and with `series` its performance.',
  description: 'Use it before an order. `buyingPower` can be spent now. Returns are time-weighted.',
  restDescription: 'USD decimal strings. `series` is long: only to draw or compare.',
  route: 'GET /api/investing/portfolio',
  who: 'account',
  scopes: ['investing:read'],
  role: 'accountant',
  effect: 'read',
  mcp: true,
  input: z.strictObject({
    timeframe: z.enum(timeframes).default('1M').describe('Window of the performance.'),
    series: z
      .union([z.boolean(), z.enum(['true', 'false']).transform((text) => text === 'true')])
      .default(false)
      .describe('Adds a hundred values over time: only to draw or compare.'),
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
  run: async (context, { timeframe, series: hasSeries }) => {
    const accountId = requireCaller(context).account.id
    const portfolio = await showPortfolio(context, { accountId, timeframe, now: context.now })
    const { performance: values } = portfolio
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
        baseValue: usd(values.baseValue),
        profitLoss: usd(values.profitLoss.at(-1) ?? 0n),
        profitLossPct: percent(values.profitLossPct.at(-1) ?? 0n),
        series: hasSeries
          ? {
              timestamp: values.timestamp.map((at) => at.toISOString()),
              equity: values.equity.map(usd),
              profitLoss: values.profitLoss.map(usd),
              profitLossPct: values.profitLossPct.map(percent),
            }
          : null,
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
