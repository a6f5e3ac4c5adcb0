/** The portfolio over time, and the orders. */
import type { Performance } from '../../client/operations.ts'
import { bursar } from './gateway.ts'
import { resource, resourceById } from './resource.ts'

const changes = ['order.', 'deposit.']

export const performanceByTimeframe = resourceById(
  (timeframe) => bursar.investing.portfolio({ timeframe: parseTimeframe(timeframe), series: true }),
  changes,
)
export const openOrders = resource(() => bursar.investing.orders.list({ status: 'open', limit: 50 }), changes)
export const closedOrders = resource(
  () => bursar.investing.orders.list({ status: 'closed', limit: 10 }),
  changes,
)

/** The owner's account at the broker. */
export const brokerageAccount = resource(() => bursar.investing.account.get())

export type Timeframe = Performance['timeframe']

const timeframes: readonly Timeframe[] = ['1D', '1W', '1M', '1Y', 'all']

function parseTimeframe(text: string): Timeframe {
  return timeframes.find((one) => one === text) ?? '1M'
}
