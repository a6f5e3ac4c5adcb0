/** Admission checks and pricing of an order. Read-only; runs before anything is held. */
import { isStopped } from '../../books/alarms/alarms.ts'
import { Failure } from '../../core/failures/failure.ts'
import { decimalOf, type Money } from '../../core/money/money.ts'
import { costRoundedUp, unitsForUp, worthRoundedDown } from '../../core/money/shares.ts'
import type { Broker } from '../../providers/broker/port.ts'
import type { Connection } from '../../storage/database.ts'
import { findBrokerageAccount } from './brokerage-store.ts'
import { availableShares } from './positions.ts'

/** 1.00 and 1,000,000.00 USD, in cents. */
const MIN_CENTS = 100n
const MAX_CENTS = 100_000_000n

/** A requested order, sized by one of both. @property size USD, or billionths of a share. @property limitPrice nano-dollars. */
export interface OrderRequest {
  readonly accountId: string
  readonly symbol: string
  readonly side: 'buy' | 'sell'
  readonly type: 'market' | 'limit'
  readonly size: { readonly notional: Money } | { readonly qty: bigint }
  readonly limitPrice: bigint | null
}

/**
 * An order ready to be placed. @property notional USD: a buy's maximum cost. @property qty maximum billionths of a share; null for
 * a buy that its notional alone limits.
 */
export interface AdmittedOrder {
  readonly notional: Money
  readonly limitPrice: bigint | null
  readonly qty: bigint | null
  /** Nano-dollars: the last quote, or the limit when there is no quote. */
  readonly referencePrice: bigint
}

/**
 * Prices an order. A limit order without a limit gets the last quote as its limit. A sell is sized at the last quote,
 * or at its limit if that is higher, so that a low limit never sells more than requested. A quantity is worth that price, and a buy
 * of one its limit; at the market it buys what the quantity costs at the last quote.
 * @throws Failure `order_rejected` with `reason`, `provider_unavailable`.
 */
export async function admitOrder(
  { broker, database }: { broker: Broker; database: Connection },
  { accountId, symbol, side, type, size, limitPrice }: OrderRequest,
): Promise<AdmittedOrder> {
  if ('notional' in size) requireFitting(side, size.notional)
  await requireActiveBrokerage({ broker, database }, accountId)
  if (await isStopped(database, { domain: 'investing', objectId: `${accountId}:${symbol}` }))
    throw buildRejection('holding_stopped', `The holding of ${symbol} waits for an administrator.`)
  const instrument = await broker.instrument(symbol)
  if (instrument === undefined)
    throw buildRejection('unknown_symbol', `${symbol} is not available for trading.`)
  if (!instrument.tradable) throw buildRejection('not_tradable', `${symbol} cannot be traded now.`)
  const quote = (await broker.quotes([symbol])).get(symbol) ?? (side === 'buy' ? limitPrice : null)
  if (quote === null || quote === undefined)
    throw buildRejection('no_quote', `There is currently no price for ${symbol}.`)
  const limit = type === 'limit' ? (limitPrice ?? quote) : null
  const priced = { limitPrice: limit, referencePrice: quote }
  if (side === 'buy') {
    if ('notional' in size) return { ...priced, notional: size.notional, qty: null }
    const notional = computeCost(size.qty, limit ?? quote)
    requireFitting(side, notional)
    return { ...priced, notional, qty: limit === null ? null : size.qty }
  }
  const owned = await availableShares(database, accountId, symbol)
  const price = limit !== null && limit > quote ? limit : quote
  if ('notional' in size)
    return { ...priced, notional: size.notional, qty: quantityToSell(size.notional, price, owned) }
  const notional = computeCost(size.qty, price)
  requireFitting(side, notional)
  if (notional.units < MIN_CENTS && size.qty !== owned) throw tooSmall(notional)
  return { ...priced, notional, qty: size.qty }
}

/** @throws Failure `order_rejected` for a buy below, or an order above what is accepted. */
function requireFitting(side: 'buy' | 'sell', notional: Money): void {
  if (side === 'buy' && notional.units < MIN_CENTS) throw tooSmall(notional)
  if (notional.units > MAX_CENTS)
    throw buildRejection('notional_too_large', `${decimalOf(notional)} USD is more than 1,000,000.00 USD.`)
}

/** Worth of a quantity, rounded up to the cent. */
function computeCost(qty: bigint, price: bigint): Money {
  return { asset: 'USD', units: costRoundedUp(qty, price) }
}

/** @throws Failure `order_rejected` when the broker keeps accounts of persons and this one's is not active. */
async function requireActiveBrokerage(
  { broker, database }: { broker: Broker; database: Connection },
  accountId: string,
): Promise<void> {
  if (broker.accounts === null) return
  const kept = await findBrokerageAccount(database, accountId)
  if (kept?.status === 'active') return
  const state = kept === undefined ? 'none' : kept.status
  throw buildRejection('no_brokerage_account', `The account at the broker is not active (${state}).`)
}

/**
 * Quantity to sell: the whole position if less than a cent would be left, and a whole remainder below the minimum
 * order for any amount up to the minimum.
 * @param owned billionths of a share that can be sold.
 * @throws Failure `order_rejected`.
 */
function quantityToSell(notional: Money, price: bigint, owned: bigint): bigint {
  const worth = worthRoundedDown(owned, price)
  const isAll = notional.units === worth
  const isRemainder = owned > 0n && worth < notional.units && notional.units <= MIN_CENTS
  if (isAll || isRemainder) return owned
  if (notional.units < MIN_CENTS) throw tooSmall(notional)
  return unitsForUp(notional.units, price)
}

function tooSmall(notional: Money): Failure {
  return buildRejection('notional_too_small', `${decimalOf(notional)} USD is less than 1.00 USD.`)
}

const hints: Readonly<Record<string, string>> = {
  unknown_symbol: 'Use the ticker of a US stock or fund, such as VTI or AAPL.',
  notional_too_small:
    'Order 1.00 USD or more; to sell a holding worth less, order 1.00, which sells all of it.',
  notional_too_large: 'Split the order.',
  no_brokerage_account:
    'The owner opens an account at the broker with POST /api/investing/account, or waits until it is active.',
  holding_stopped: 'Contact the operator: the broker reports another quantity than is booked.',
}

/** Builds the rejection of an order. @param reason machine-readable reason. */
export function buildRejection(reason: string, detail: string): Failure {
  return new Failure('order_rejected', `${detail} Nothing was bought or sold.`, {
    reason,
    isFinal: true,
    hint: hints[reason] ?? 'Change the order and send it with a new idempotency key.',
  })
}
