/**
 * Tables of `13-investing.sql` and `14-swaps.sql` in `sql/migrations/0001-baseline`. Quantities are billionths of a
 * share, prices nano-dollars, money cents.
 */
import type { Generated } from 'kysely'
import type { JsonColumn } from './schema.ts'

export interface InvestingTables {
  investing_order: InvestingOrderTable
  position_change: PositionChangeTable
  position: PositionTable
  dividend: DividendTable
  sandbox_order: SandboxOrderTable
  swap_quote: SwapQuoteTable
}

/** An order. `new` until the broker is known to have it. */
interface InvestingOrderTable {
  id: string
  account_id: string
  /** Key that placed the order; null for the owner. */
  key_id: string | null
  decision_id: string
  client_order_id: string | null
  /** RFC 8785 JSON of the request. */
  asked: string
  symbol: string
  side: 'buy' | 'sell'
  type: 'market' | 'limit'
  notional: bigint
  /** Maximum quantity of a sale. */
  qty: bigint | null
  limit_price: bigint | null
  reference_price: bigint
  status: 'new' | 'accepted' | 'partially_filled' | 'filled' | 'canceled' | 'rejected' | 'expired'
  reject_reason: string | null
  filled_qty: Generated<bigint>
  filled_cash: Generated<bigint>
  filled_avg_price: bigint | null
  cancel_requested_at: Date | null
  submitted_at: Date
  filled_at: Date | null
  updated_at: Date
}

/** A change of a position. Negative `qty` is a sale; `cash` is the amount paid or received. */
interface PositionChangeTable {
  id: string
  account_id: string
  symbol: string
  qty: bigint
  cash: bigint
  order_id: string | null
  at: Date
}

/** Cost of an account's shares; the ledger has their number. */
interface PositionTable {
  account_id: string
  symbol: string
  cost: bigint
}

/** A dividend for shares held at the record date. Dates are `YYYY-MM-DD`. */
interface DividendTable {
  account_id: string
  symbol: string
  record_date: string
  /** Distinguishes dividends with the same record date. */
  ordinal: number
  pay_date: string
  qty: bigint
  per_share: bigint
  amount: bigint
  status: 'announced' | 'paid'
  paid_at: Date | null
}

/**
 * An order in the sandbox broker's book. `filled_value` is billionths of a share times nano-dollars, as decimal text.
 */
interface SandboxOrderTable {
  id: string
  symbol: string
  side: string
  notional: bigint
  qty: bigint | null
  limit_price: bigint | null
  status: string
  placed_at: Date
  expires_at: Date
  matched_at: Date
  filled_qty: Generated<bigint>
  filled_value: Generated<string>
  filled_at: Date | null
}

/** A swap quote as returned to the client. */
interface SwapQuoteTable {
  id: string
  account_id: string
  answer: JsonColumn
  created_at: Date
  expires_at: Date
}
