/** What is found out about an order before anything is held. Reads, and may refuse. */
import { Failure } from '../failures/failure.ts'
import { decimalOf, type Money } from '../money/money.ts'
import { unitsForUp, worthRoundedDown } from '../money/shares.ts'
import type { Broker } from '../providers/broker.ts'
import type { Connection } from '../storage/database.ts'
import { availableShares } from './positions.ts'

/** 1.00 and 1,000,000.00 USD, in cents. */
const LEAST_CENTS = 100n
const MOST_CENTS = 100_000_000n

/** An order as it is asked for. @property notional USD. @property limitPrice nano-dollars. */
export interface OrderRequest {
  readonly accountId: string
  readonly symbol: string
  readonly side: 'buy' | 'sell'
  readonly type: 'market' | 'limit'
  readonly notional: Money
  readonly limitPrice: bigint | null
}

/** What the order will be placed with. @property qty billionths of a share that a sell gives up at most; null for a buy. */
export interface AdmittedOrder {
  readonly limitPrice: bigint | null
  readonly qty: bigint | null
  /** Nano-dollars: the last quote, or the limit where there is none. */
  readonly referencePrice: bigint
}

/**
 * Prices an order: a limit order without a limit gets the last quote as its limit; a sell gives up what its amount is worth at
 * the last quote, or at its limit where that is higher: a low limit never sells more than was asked for.
 * @throws Failure `order_rejected` with `reason`, `provider_unavailable`.
 */
export async function admitOrder(
  { broker, database }: { broker: Broker; database: Connection },
  { accountId, symbol, side, type, notional, limitPrice }: OrderRequest,
): Promise<AdmittedOrder> {
  if (side === 'buy' && notional.units < LEAST_CENTS) throw tooSmall(notional)
  if (notional.units > MOST_CENTS)
    throw rejected('notional_too_large', `${decimalOf(notional)} USD is more than 1,000,000.00 USD.`)
  if (!broker.isOpenTo(accountId))
    throw rejected('no_brokerage_account', 'The account has no brokerage account here.')
  const instrument = await broker.instrument(symbol)
  if (instrument === undefined) throw rejected('unknown_symbol', `${symbol} is not traded here.`)
  if (!instrument.tradable) throw rejected('not_tradable', `${symbol} cannot be traded now.`)
  const quote = (await broker.quotes([symbol])).get(symbol) ?? (side === 'buy' ? limitPrice : null)
  if (quote === null || quote === undefined) throw rejected('no_quote', `There is no price of ${symbol} now.`)
  const limit = type === 'limit' ? (limitPrice ?? quote) : null
  if (side === 'buy') return { limitPrice: limit, qty: null, referencePrice: quote }
  const owned = await availableShares(database, accountId, symbol)
  const price = limit !== null && limit > quote ? limit : quote
  return { limitPrice: limit, qty: quantityToSell(notional, price, owned), referencePrice: quote }
}

/**
 * What a sell gives up: all where nothing that is worth a cent would be left, and all of a remainder below the least order
 * for any amount up to that. @param owned billionths of a share that can be sold. @throws Failure `order_rejected`.
 */
function quantityToSell(notional: Money, price: bigint, owned: bigint): bigint {
  const worth = worthRoundedDown(owned, price)
  const isAll = notional.units === worth
  const isRemainder = owned > 0n && worth < notional.units && notional.units <= LEAST_CENTS
  if (isAll || isRemainder) return owned
  if (notional.units < LEAST_CENTS) throw tooSmall(notional)
  return unitsForUp(notional.units, price)
}

function tooSmall(notional: Money): Failure {
  return rejected('notional_too_small', `${decimalOf(notional)} USD is less than 1.00 USD.`)
}

const hints: Readonly<Record<string, string>> = {
  unknown_symbol: 'Use the ticker of a US stock or fund, such as VTI or AAPL.',
  notional_too_small: 'Ask for 1.00 USD or more; a holding that is worth less is sold whole for 1.00.',
  notional_too_large: 'Split the order.',
  no_brokerage_account: 'Ask the operator: this deployment trades for one account alone.',
}

/** An order that nobody will fill. @param reason for programs. */
export function rejected(reason: string, detail: string): Failure {
  return new Failure('order_rejected', `${detail} Nothing was bought or sold.`, {
    reason,
    isFinal: true,
    hint: hints[reason] ?? 'Change the order and send it with a new idempotency key.',
  })
}
