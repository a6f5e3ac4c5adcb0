/** Holdings, what they became, and the orders that are still open. */
import { useState } from 'preact/hooks'
import type { Holding, InvestingPortfolioResponse, Order } from '../../client/operations.ts'
import { Amount, Figure } from '../components/amount.tsx'
import { BrokerageAccountPanel } from '../components/brokerage-account.tsx'
import { ActionButton, Dialog, DialogButtons, Field, MoneyInput, Segments } from '../components/controls.tsx'
import { LineChart } from '../components/line-chart.tsx'
import { Status } from '../components/marks.tsx'
import { Empty, Failed, SkeletonRows, toast } from '../components/messages.tsx'
import { Columns, PageHead, Panel } from '../components/panel.tsx'
import { bursar, withProof } from '../data/gateway.ts'
import { closedOrders, openOrders, performanceByTimeframe, type Timeframe } from '../data/invest.ts'
import { portfolio } from '../data/money.ts'
import { payOnce } from '../data/payments.ts'
import { loadedValue, useResource } from '../data/resource.ts'
import {
  compareDecimals,
  formatDecimal,
  formatSignedPercent,
  formatSignedUsd,
  formatUsd,
  isAmount,
  subtractDecimals,
} from '../words/money.ts'
import { formatDay } from '../words/time.ts'

const frames = [
  ['1D', '1D'],
  ['1W', '1W'],
  ['1M', '1M'],
  ['1Y', '1Y'],
  ['all', 'All'],
] as const

const spans: Record<Timeframe, string> = {
  '1D': 'today',
  '1W': 'this week',
  '1M': 'this month',
  '1Y': 'this year',
  all: 'in all',
}

export function InvestPage() {
  const state = useResource(portfolio)
  const [isOrdering, setOrdering] = useState(false)
  const current = loadedValue(state)
  return (
    <>
      <PageHead
        title="Invest"
        actions={
          <button class="btn btn--primary" type="button" onClick={() => setOrdering(true)}>
            Buy or sell
          </button>
        }
      >
        Shares and funds by the dollar.
      </PageHead>
      <Columns
        main={
          <>
            <BrokerageAccountPanel />
            <Worth />
            <Panel title="Holdings">
              {state.status === 'loading' && <SkeletonRows />}
              {state.status === 'failed' && (
                <Failed subject="The portfolio" error={state.error} retry={portfolio.reload} />
              )}
              {current !== undefined &&
                (current.holdings.length === 0 ? (
                  <Empty icon="invest" title="No holding yet">
                    Buy for as little as one dollar. What is not bought stays cash.
                  </Empty>
                ) : (
                  <Holdings holdings={current.holdings} />
                ))}
            </Panel>
          </>
        }
        side={
          <>
            <Panel title="To invest">
              <div class="panel__body">
                <div class="stat">
                  <span class="figure">{current === undefined ? '–' : formatUsd(current.buyingPower)}</span>
                  <span class="small faint num">{cashWords(current)}</span>
                </div>
              </div>
            </Panel>
            <OpenOrders />
            <Dividends current={current} />
            <PastOrders />
          </>
        }
      />
      {isOrdering && <OrderDialog holdings={current?.holdings ?? []} close={() => setOrdering(false)} />}
    </>
  )
}

/** `USD cash · 25.00 held`. */
function cashWords(current: InvestingPortfolioResponse | undefined): string {
  const held = current === undefined ? '0' : subtractDecimals(current.cash, current.buyingPower)
  return compareDecimals(held, '0') > 0 ? `USD cash · ${formatDecimal(held)} held` : 'USD cash'
}

function Worth() {
  const [timeframe, choose] = useState<Timeframe>('1M')
  const source = performanceByTimeframe(timeframe)
  const state = useResource(source)
  if (state.status === 'failed')
    return (
      <Panel>
        <Failed subject="The performance" error={state.error} retry={source.reload} />
      </Panel>
    )
  const value = loadedValue(state)
  return (
    <section class="panel" aria-busy={value === undefined}>
      <div class="panel__body stack">
        <div class="row row--wide row--wrap">
          <div class="stat">
            <h2 class="stat__name">Cash and holdings</h2>
            {value === undefined ? <span class="bone bone--fig" /> : <Figure usd={value.equity} />}
            {value !== undefined && <Gain value={value} span={spans[timeframe]} />}
          </div>
          <Segments label="Time" options={frames} value={timeframe} choose={choose} />
        </div>
        {value?.performance.series != null && value.performance.series.profitLoss.length > 1 ? (
          <>
            <LineChart
              label={`Gain or loss ${spans[timeframe]}`}
              times={value.performance.series.timestamp}
              values={value.performance.series.profitLoss}
            />
            <p class="small faint">
              The line is the gain or loss alone: money that came in or went out does not move it.
            </p>
          </>
        ) : (
          <p class="small faint">The chart begins with the second day.</p>
        )}
      </div>
    </section>
  )
}

function Gain({ value, span }: { readonly value: InvestingPortfolioResponse; readonly span: string }) {
  const { profitLoss, profitLossPct } = value.performance
  const isUp = compareDecimals(profitLoss, '0') >= 0
  const text = `${formatSignedUsd(profitLoss)} (${formatSignedPercent(profitLossPct)})`
  return (
    <span class="small num">
      <span class={isUp ? 'amt amt--in' : 'amt'}>{text}</span>{' '}
      <span class="faint">{span}, time-weighted</span>
    </span>
  )
}

function Holdings({ holdings }: { readonly holdings: readonly Holding[] }) {
  return (
    <div class="tablewrap">
      <table class="table table--stack">
        <thead>
          <tr>
            <th scope="col">Holding</th>
            <th scope="col" class="end">
              Shares
            </th>
            <th scope="col" class="end">
              Price
            </th>
            <th scope="col" class="end">
              Worth
            </th>
            <th scope="col" class="end">
              Gain
            </th>
          </tr>
        </thead>
        <tbody>
          {holdings.map(({ symbol, name, qty, currentPrice, marketValue, unrealizedPl }) => {
            const isUp = compareDecimals(unrealizedPl, '0') >= 0
            return (
              <tr key={symbol}>
                <td>
                  <span class="strong">{symbol}</span> <span class="faint">{name}</span>
                </td>
                <td class="end soft only-wide">{formatShares(qty)}</td>
                <td class="end soft only-wide">{formatDecimal(currentPrice)}</td>
                <td class="end strong">{formatUsd(marketValue)}</td>
                <td class="end only-wide">
                  <span class={isUp ? 'amt amt--in' : 'amt'}>
                    {isUp ? '+' : '\u2212'}
                    {formatDecimal(unrealizedPl.replace('-', ''))}
                  </span>
                </td>
              </tr>
            )
          })}
        </tbody>
      </table>
    </div>
  )
}

/** Shares without the zeros at the end. */
function formatShares(qty: string): string {
  return qty.includes('.') ? qty.replace(/\.?0+$/, '') : qty
}

function describeOrder({ side, symbol, notional, limitPrice }: Order): { main: string; sub: string } {
  return {
    main: `${side === 'buy' ? 'Buy' : 'Sell'} ${symbol} for ${formatUsd(notional)}`,
    sub:
      limitPrice === null
        ? 'At the market price'
        : `At ${formatDecimal(limitPrice)} or ${side === 'buy' ? 'less' : 'more'}, today only`,
  }
}

function OpenOrders() {
  const state = useResource(openOrders)
  const orders = loadedValue(state)?.orders ?? []
  const cancel = async (order: Order) => {
    await bursar.investing.orders.cancel({ id: order.id })
    await openOrders.reload()
    toast('Cancelled. What was bought or sold before stays.')
  }
  if (orders.length === 0) return null
  return (
    <Panel title="Open orders">
      <ul class="rows">
        {orders.map((order) => {
          const { main, sub } = describeOrder(order)
          return (
            <li class="item item--two" key={order.id}>
              <span class="item__main">
                <span class="item__name">{main}</span>
                <span class="item__sub num">{sub}</span>
              </span>
              <ActionButton size="sm" run={() => cancel(order)} busy="Cancelling" label={`Cancel: ${main}`}>
                Cancel
              </ActionButton>
            </li>
          )
        })}
      </ul>
    </Panel>
  )
}

function PastOrders() {
  const orders = loadedValue(useResource(closedOrders))?.orders ?? []
  if (orders.length === 0) return null
  return (
    <Panel title="Past orders">
      <ul class="rows">
        {orders.map((order) => (
          <li class="item item--two" key={order.id}>
            <span class="item__main">
              <span class="item__name">{describeOrder(order).main}</span>
              <span class="item__sub num wrap">
                {formatDay(order.submittedAt)}
                {order.filledAvgPrice !== null &&
                  ` · ${formatShares(order.filledQty)} at ${formatDecimal(order.filledAvgPrice)}`}
                {order.rejectReason !== null && ` · ${order.rejectReason}`}
              </span>
            </span>
            <Status status={order.status} />
          </li>
        ))}
      </ul>
    </Panel>
  )
}

function Dividends({ current }: { readonly current: InvestingPortfolioResponse | undefined }) {
  const dividends = current?.dividends ?? []
  if (dividends.length === 0) return null
  return (
    <Panel title="Dividends">
      <ul class="rows">
        {dividends.slice(0, 6).map(({ symbol, payDate, amount, status }) => (
          <li class="item item--two" key={`${symbol} ${payDate}`}>
            <span class="item__main">
              <span class="item__name">{symbol}</span>
              <span class="item__sub">
                {status === 'paid' ? '' : 'expected on '}
                {formatDay(`${payDate}T12:00:00Z`)}
              </span>
            </span>
            <span class="item__end">
              <Amount amount={amount} asset="USD" direction={status === 'paid' ? 'in' : 'none'} />
            </span>
          </li>
        ))}
      </ul>
    </Panel>
  )
}

function OrderDialog({
  holdings,
  close,
}: {
  readonly holdings: readonly Holding[]
  readonly close: () => void
}) {
  const [side, setSide] = useState<'buy' | 'sell'>('buy')
  const [symbol, setSymbol] = useState(holdings[0]?.symbol ?? '')
  const [notional, setNotional] = useState('10.00')
  const [limitPrice, setLimitPrice] = useState('')
  const ticker = symbol.trim().toUpperCase()
  const isReady = ticker !== '' && isAmount(notional.trim())
  const order = async () => {
    const limit = limitPrice.trim()
    const request = {
      symbol: ticker,
      side,
      notional: notional.trim(),
      ...(limit === '' ? {} : { type: 'limit' as const, limitPrice: limit }),
    }
    const placed = await payOnce('investing.order', request, ({ idempotencyKey }) =>
      withProof(() => bursar.investing.order(request, { idempotencyKey })),
    )
    await Promise.all([portfolio.reload(), openOrders.reload(), closedOrders.reload()])
    close()
    toast(placed.status === 'filled' ? 'The order is filled.' : 'The order is placed.')
  }
  return (
    <Dialog title="Buy or sell" close={close}>
      <Segments
        label="Side"
        options={[
          ['buy', 'Buy'],
          ['sell', 'Sell'],
        ]}
        value={side}
        choose={setSide}
      />
      <Field label="Ticker" of="symbol" hint="Such as AAPL or VTI.">
        {(props) => (
          <input
            class="input"
            maxLength={12}
            autofocus
            autoComplete="off"
            value={symbol}
            onInput={(event) => setSymbol(event.currentTarget.value)}
            {...props}
          />
        )}
      </Field>
      <Field label="For" of="notional">
        {(props) => (
          <MoneyInput
            value={notional}
            onInput={(event) => setNotional(event.currentTarget.value)}
            {...props}
          />
        )}
      </Field>
      <Field
        label="Limit a share"
        of="limitPrice"
        hint="Empty: at the market price. A limit waits until the end of the session."
      >
        {(props) => (
          <MoneyInput
            value={limitPrice}
            onInput={(event) => setLimitPrice(event.currentTarget.value)}
            {...props}
          />
        )}
      </Field>
      <DialogButtons close={close}>
        <ActionButton kind="primary" run={order} busy="Placing it" disabled={!isReady}>
          {side === 'buy' ? 'Buy' : 'Sell'} {ticker} for {formatUsd(notional.trim())}
        </ActionButton>
      </DialogButtons>
    </Dialog>
  )
}
