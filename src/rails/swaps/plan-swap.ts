/** Plans a swap before anything is reserved: from a quote that was made, or from one that is made now. */
import { Failure } from '../../core/failures/failure.ts'
import { amountMismatch, type Stablecoin, stablecoins, toDecimal, toMoney } from '../../core/money/money.ts'
import { findSwapToken, isSwapChain, type SwapToken, worthInMicros } from '../../core/money/swap-tokens.ts'
import type { Chains } from '../../providers/chain/chains.ts'
import type { Chain } from '../../providers/chain/port.ts'
import type { SwapAggregator, SwapVenue } from '../../providers/swap-aggregator/port.ts'
import type { Connection } from '../../storage/database.ts'
import { isQuoteUsed } from './orders.ts'
import { findSilence, quoteSwap, type RankedOffer } from './quote-swap.ts'
import { type ExecutableQuote, findQuote } from './store.ts'

/** Accepted shortfall against the expected output, unless the caller says another: 0.5 %. */
export const SLIPPAGE_BPS = 50

/** A swap that brings less than that of its worth at reference prices, in percent, needs a `minReceived`. */
const LEAST_WORTH_PERCENT = 95n

/** How long after its expiry a quote may still be executed that an owner signed. */
const SIGNED_MS = 5 * 60_000

export interface PlanSwapDependencies {
  readonly database: Connection
  readonly chains: Chains
  readonly chain: Chain
  readonly swapAggregators: readonly SwapAggregator[]
  readonly settings: { readonly dataKey: Uint8Array }
  readonly now: Date
}

/**
 * A swap as it was asked for.
 * @property isSigned its quote was signed by the owner: it may be older. @property isApproved the owner has approved the call, maybe
 * long after its quote: another route is taken then, which brings as much.
 */
export interface AskedSwap {
  readonly accountId: string
  readonly quoteId?: string | undefined
  readonly sell?:
    | { readonly chain?: string | undefined; readonly token: Stablecoin; readonly amount: string }
    | undefined
  readonly buy?: { readonly chain?: string | undefined; readonly token: Stablecoin } | undefined
  readonly maxSlippageBps?: number | undefined
  readonly minReceived?: string | undefined
  readonly wallet: string | null
  readonly isSigned: boolean
  readonly isApproved: boolean
}

/** A swap to execute. @property quoteId null: it was quoted just now. */
export type PlannedSwap = ExecutableQuote & { readonly quoteId: string | null }

/** @throws Failure `swap_rejected`, `no_route`, `chain_not_supported`, `invalid_request`. */
export async function planSwap(parts: PlanSwapDependencies, asked: AskedSwap): Promise<PlannedSwap> {
  const { quoteId, minReceived } = asked
  const planned =
    quoteId === undefined
      ? { ...(await quoteNow(parts, asked)), quoteId: null }
      : { ...(await takeQuote(parts, { ...asked, quoteId })), quoteId: asked.isApproved ? null : quoteId }
  const { route, expected } = planned
  const wanted = minReceived === undefined ? 0n : readUnits('minReceived', route.buy, minReceived)
  if (wanted > expected)
    throw new Failure(
      'swap_rejected',
      `The best route brings ${show(route.buy, expected)}; ${minReceived} ${route.buy} is asked for. Nothing was sent.`,
      { reason: 'below_minimum', isFinal: true, hint: 'Lower minReceived, or wait for a better price.' },
    )
  if (minReceived === undefined) requireWorth(planned)
  return wanted > route.minReceived ? { ...planned, route: { ...route, minReceived: wanted } } : planned
}

/** Where a pair can be executed; undefined: on none of our chains. */
export function findVenue(
  { chains, now }: Pick<PlanSwapDependencies, 'chains' | 'now'>,
  { from, to }: { readonly from: SwapToken; readonly to: SwapToken },
): (SwapVenue & { readonly sell: Stablecoin; readonly buy: Stablecoin }) | undefined {
  const sell = stablecoins.find((symbol) => symbol === from.symbol)
  const buy = stablecoins.find((symbol) => symbol === to.symbol)
  const [chain, target] = [from, to].map(({ chain: name }) =>
    chains.all.find((one) => one.name === chains.resolveName(name)),
  )
  if (chain === undefined || target === undefined || sell === undefined || buy === undefined) return undefined
  if (chain.tokens[sell] === undefined || target.tokens[buy] === undefined) return undefined
  return { chain, at: now, sell, buy, ...(chain.name === target.name ? {} : { destination: target }) }
}

/** What of an offer can be executed; null: it is a price only. */
export function toExecutable(
  offer: RankedOffer,
  venue: (SwapVenue & { readonly sell: Stablecoin; readonly buy: Stablecoin }) | undefined,
  units: bigint,
): ExecutableQuote | null {
  const { call, amountOut, amountOutMin, tool, fees } = offer
  if (call === undefined || venue === undefined || amountOutMin === 0n) return null
  // What a desk buys arrives on its own chain.
  if (call.burn?.to !== venue.destination?.name) return null
  return {
    tool,
    chain: venue.chain.name,
    sell: venue.sell,
    units,
    expected: amountOut,
    feeMicros: fees.reduce((sum, { usdMicros }) => sum + usdMicros, 0n),
    route: { buy: venue.buy, minReceived: amountOutMin, ...call },
  }
}

async function quoteNow(
  parts: PlanSwapDependencies,
  asked: AskedSwap,
  aggregators = parts.swapAggregators,
): Promise<ExecutableQuote> {
  const { sell, buy, maxSlippageBps = SLIPPAGE_BPS, wallet } = asked
  if (sell === undefined || buy === undefined) throw new Error('a swap names its quote or its legs')
  const chain = parts.chains.of(sell.chain ?? parts.chain.name)
  const target = parts.chains.of(buy.chain ?? chain.name)
  const [from, to] = [requireToken(chain, sell.token), requireToken(target, buy.token)]
  if (chain.name === target.name && sell.token === buy.token) {
    const message = `is ${buy.token} on ${chain.name}, which is sold`
    throw new Failure('invalid_request', `buy.token: ${message}.`, {
      issues: [{ path: 'buy.token', message }],
      hint: 'Name another token or chain.',
    })
  }
  const venue = findVenue(parts, { from, to })
  if (venue === undefined)
    throw new Failure(
      'pair_not_supported',
      `${sell.token} on ${chain.name} cannot be swapped to ${buy.token} on ${target.name} here.`,
      {
        hint: 'Name two different stablecoins of one chain, or USDC on two chains.',
      },
    )
  const units = readUnits('sell.amount', sell.token, sell.amount)
  const request = { from, to, amountIn: units, slippageBps: maxSlippageBps, sender: wallet, venue }
  const { best, failed } = await quoteSwap(aggregators, request)
  const executable = toExecutable(best, venue, units)
  if (executable === null) throw findSilence(aggregators, failed) ?? notExecutable()
  return executable
}

async function takeQuote(
  parts: PlanSwapDependencies,
  { quoteId, isApproved, ...asked }: AskedSwap & { readonly quoteId: string },
): Promise<ExecutableQuote> {
  const { database, settings, now } = parts
  const { accountId, isSigned } = asked
  const quote = await findQuote({ database, settings }, { accountId, id: quoteId })
  if (quote === undefined) throw rejectQuote('quote_unknown', 'You have no such quote')
  const until = quote.expiresAt.getTime() + (isSigned ? SIGNED_MS : 0)
  if (quote.executable !== null && isApproved && until < now.getTime())
    return renewQuote(parts, quote.executable, asked)
  if (until < now.getTime()) throw rejectQuote('quote_expired', 'The quote has expired')
  if (await isQuoteUsed(database, quoteId)) throw rejectQuote('quote_used', 'The quote was used already')
  if (quote.executable === null) throw notExecutable()
  return quote.executable
}

/** Quotes an expired quote anew. @throws Failure `swap_rejected` when no route brings what the expired one would have. */
async function renewQuote(
  parts: PlanSwapDependencies,
  { chain, sell, units, route, tool }: ExecutableQuote,
  asked: Omit<AskedSwap, 'quoteId' | 'isApproved'>,
): Promise<ExecutableQuote> {
  const amount = toDecimal({ asset: sell, units })
  const { burn } = route
  const legs = { sell: { chain, token: sell, amount }, buy: { chain: burn?.to ?? chain, token: route.buy } }
  // How fast USDC goes to another chain was approved, too.
  const isSame = (one: SwapAggregator) => burn === undefined || one.tool === tool
  const aggregators = parts.swapAggregators.filter(isSame)
  const renewed = await quoteNow(parts, { ...asked, ...legs, isApproved: true }, aggregators)
  if (renewed.expected >= route.minReceived)
    return { ...renewed, route: { ...renewed.route, minReceived: route.minReceived } }
  throw rejectQuote(
    'below_minimum',
    `The best route brings ${show(route.buy, renewed.expected)} now; ${show(route.buy, route.minReceived)} was approved`,
  )
}

/** Keeps a swap from being made at a price that nobody would have agreed to. */
function requireWorth({ chain, sell, units, route }: ExecutableQuote): void {
  const [from, to] = [findToken(chain, sell), findToken(route.burn?.to ?? chain, route.buy)]
  if (from === undefined || to === undefined) return
  const paid = worthInMicros(units, from.decimals, from.usdMicros)
  const least = worthInMicros(route.minReceived, to.decimals, to.usdMicros)
  if (least * 100n >= paid * LEAST_WORTH_PERCENT) return
  throw new Failure(
    'swap_rejected',
    `At least ${show(route.buy, route.minReceived)} for ${show(sell, units)} is more than 5 % below the reference price. Nothing was sent.`,
    {
      reason: 'price',
      isFinal: true,
      hint: 'Wait, swap less at a time, or name the minReceived that you accept.',
    },
  )
}

/** @throws Failure `invalid_request` when the amount has more fraction digits than its token. */
function readUnits(path: string, asset: Stablecoin, amount: string): bigint {
  const message = amountMismatch(amount, asset)
  if (message === undefined) return toMoney(asset, amount).units
  throw new Failure('invalid_request', `${path}: ${message}.`, { issues: [{ path, message }] })
}

function requireToken({ name }: Pick<Chain, 'name'>, symbol: Stablecoin): SwapToken {
  const found = findToken(name, symbol)
  if (found !== undefined) return found
  throw new Failure('pair_not_supported', `${symbol} on ${name} cannot be swapped.`, {
    hint: 'Name another token or chain.',
  })
}

function findToken(chain: string, symbol: Stablecoin): SwapToken | undefined {
  return isSwapChain(chain) ? findSwapToken(chain, symbol) : undefined
}

function notExecutable(): Failure {
  return rejectQuote(
    'not_executable',
    'The quote is a price only: no aggregator offers a call for it on a chain of this deployment',
  )
}

function rejectQuote(reason: string, detail: string): Failure {
  return new Failure('swap_rejected', `${detail}. Nothing was sent.`, {
    reason,
    isFinal: true,
    hint: 'Ask for a new quote with POST /api/swaps, and swap it within 30 seconds.',
  })
}

function show(asset: Stablecoin, units: bigint): string {
  return `${toDecimal({ asset, units })} ${asset}`
}
