/** Schemas of Alpaca's answers. Decimals are strings, or numbers in market data; both become billionths. */
import { z } from 'zod'
import type { OrderReport } from './port.ts'

/** More digits than any traded value has. */
const decimal = z.string().regex(/^\d{1,15}(\.\d{1,18})?$/)
const price = z.number().min(0.000_001).max(1_000_000_000)

/** Converts a decimal to billionths, rounding down. */
export function toNanos(value: string | number): bigint {
  const text = typeof value === 'number' ? value.toFixed(9) : value
  const [whole = '0', fraction = ''] = text.split('.')
  return BigInt(whole + fraction.slice(0, 9).padEnd(9, '0'))
}

const nanos = decimal.transform(toNanos)
const moment = z.string().transform((text, context) => {
  const at = new Date(text)
  if (!Number.isNaN(at.getTime())) return at
  context.addIssue({ code: 'custom', message: 'is not a time' })
  return z.NEVER
})
const date = z.iso.date()

/** @see https://docs.alpaca.markets/reference/getorderforaccount */
export const order = z.object({
  id: z.string().min(1),
  client_order_id: z.string(),
  symbol: z.string(),
  side: z.enum(['buy', 'sell']),
  status: z.string(),
  filled_qty: nanos,
  filled_avg_price: nanos.nullish().transform((price) => price ?? null),
  filled_at: moment.nullish().transform((at) => at ?? null),
})

/** @see https://docs.alpaca.markets/reference/get-v1-assets-symbol_or_asset_id */
export const asset = z.object({
  name: z.string(),
  status: z.string(),
  tradable: z.boolean(),
  fractionable: z.boolean(),
})

/** Latest trades by symbol. @see https://docs.alpaca.markets/reference/stocklatesttrades-1 */
export const trades = z.object({ trades: z.record(z.string(), z.object({ p: price })) })

/** Bars with start time and closing price. @see https://docs.alpaca.markets/reference/stockbars */
export const bars = z.object({
  bars: z.record(z.string(), z.array(z.object({ t: moment, c: price }))),
  next_page_token: z.string().nullable(),
})

/** @see https://docs.alpaca.markets/reference/get-v1-corporate_actions-announcements-1 */
export const announcement = z.object({
  initiating_symbol: z.string(),
  record_date: date.nullable(),
  payable_date: date.nullable(),
  cash: nanos.nullable().catch(null),
})

export const problem = z.object({ message: z.string() }).catch({ message: 'no reason given' })

const ended: ReadonlyMap<string, OrderReport['status']> = new Map([
  ['filled', 'filled'],
  ['canceled', 'canceled'],
  ['expired', 'expired'],
  ['rejected', 'rejected'],
])

/** Maps Alpaca's order status; every status that is not final counts as open. */
export function toStatus(status: string, filledQty: bigint): OrderReport['status'] {
  return ended.get(status) ?? (filledQty > 0n ? 'partially_filled' : 'accepted')
}

/** @see https://docs.alpaca.markets/docs/accounts */
export const brokerageAccount = z.object({ id: z.uuid(), status: z.string() })

/** An account with its owner, as far as it identifies an application. */
export const ownedAccount = brokerageAccount.extend({
  created_at: moment,
  contact: z.object({ email_address: z.string() }),
  identity: z.object({ given_name: z.string(), family_name: z.string(), date_of_birth: z.string() }),
})

/** @see https://docs.alpaca.markets/reference/createjournal */
export const journal = z.object({
  id: z.uuid(),
  entry_type: z.literal('JNLC'),
  from_account: z.string(),
  to_account: z.string(),
  net_amount: nanos,
  status: z.string(),
})

const signed = z.string().regex(/^-?\d{1,15}(\.\d{1,18})?$/)

function toSignedNanos(text: string): bigint {
  return text.startsWith('-') ? -toNanos(text.slice(1)) : toNanos(text)
}

export const tradingAccount = z.object({ cash_withdrawable: signed.transform(toSignedNanos) })

export const position = z.object({ symbol: z.string(), qty: nanos, side: z.literal('long') })

/** @see https://docs.alpaca.markets/docs/account-activities */
export const activity = z.object({
  id: z.string().min(1),
  activity_type: z.string(),
  account_id: z.string(),
})

/** An activity that is no trade. */
export const otherActivity = activity.extend({
  date,
  net_amount: signed.transform(toSignedNanos),
  status: z.string().optional(),
  symbol: z.string().nullish(),
  qty: signed.transform(toSignedNanos).nullish(),
  per_share_amount: nanos.nullish(),
})
