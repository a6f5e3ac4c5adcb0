/** The tables of `13-investing.sql` and `14-swaps.sql` in `sql/migrations/0001-baseline` as Kysely sees them. Quantities are billionths of a share, prices nano-dollars, money cents. */
import type { Generated } from 'kysely'
import type { JsonColumn } from './schema.ts'

/** Its tables. */
export interface InvestingTables {
  investing_order: InvestingOrderTable
  position_change: PositionChangeTable
  position: PositionTable
  dividend: DividendTable
  sandbox_order: SandboxOrderTable
  swap_quote: SwapQuoteTable
}

/** An order and how far it came. `new` until the broker is known to have it. */
interface InvestingOrderTable {
  id: string
  account_id: string
  /** That placed it; null: the owner. */
  key_id: string | null
  decision_id: string
  client_order_id: string | null
  /** RFC 8785 JSON of what the caller asked for. */
  asked: string
  symbol: string
  side: 'buy' | 'sell'
  type: 'market' | 'limit'
  notional: bigint
  /** What a sell gives up at most. */
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

/** A change of a position. `qty` below zero is a sale; `cash` is what was paid for it or got. */
interface PositionChangeTable {
  id: string
  account_id: string
  symbol: string
  qty: bigint
  cash: bigint
  order_id: string | null
  at: Date
}

/** What the shares that an account has cost it; how many they are is the ledger's to say. */
interface PositionTable {
  account_id: string
  symbol: string
  cost: bigint
}

/** What an account gets for shares that it had at the record date. Dates are `YYYY-MM-DD`. */
interface DividendTable {
  account_id: string
  symbol: string
  record_date: string
  /** Of several with one record date. */
  ordinal: number
  pay_date: string
  qty: bigint
  per_share: bigint
  amount: bigint
  status: 'announced' | 'paid'
  paid_at: Date | null
}

/** An order in the sandbox broker's book. `filled_value` is billionths of a share times nano-dollars, a decimal text. */
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

/** A swap quote as its client got it. */
interface SwapQuoteTable {
  id: string
  account_id: string
  answer: JsonColumn
  created_at: Date
  expires_at: Date
}
