/**
 * The sandbox's routes that can be executed: through the market of a local chain, honestly, or through a contract that lies about
 * it. They quote what the market would pay at its present reserves.
 */
import { encodeFunctionData } from 'viem'
import { type Stablecoin, stablecoins } from '../../core/money/money.ts'
import { type SwapToken, worthInMicros } from '../../core/money/swap-tokens.ts'
import { type Address, tokenAddress } from '../chain/port.ts'
import {
  HONEST_ROUTE,
  liarAbi,
  lyingRoutes,
  poolAbi,
  sandboxLiarAddress,
  sandboxPoolAddress,
} from '../sandbox-market.ts'
import type { SwapAggregator, SwapAnswer, SwapOfferCall, SwapRequest, SwapVenue } from './port.ts'

type LyingRoute = keyof typeof lyingRoutes

/** How far ahead the market is told to accept a swap; the operation itself expires earlier. */
const DEADLINE_SECONDS = 3_600n

const GAS_USD_MICROS = 10_000n
const DURATION_SEC = 2
const SHARE = 10_000n

/** The honest route. */
export function createSandboxPool(): SwapAggregator {
  return { tool: HONEST_ROUTE, isLocal: true, quote: (request) => quotePool(request, buildPoolCall) }
}

/** The routes that lie; they are offered to nobody who does not name one. */
export function createLyingRoutes(): readonly SwapAggregator[] {
  const names = Object.keys(lyingRoutes).filter(isLyingRoute)
  return names.map((name, lie) => ({
    tool: name,
    quote: (request) => quotePool(request, (parts) => buildLiarCall(lie, parts)),
  }))
}

interface PoolTrade {
  readonly request: SwapRequest
  readonly venue: SwapVenue
  readonly sell: Stablecoin
  readonly buy: Stablecoin
  readonly least: bigint
}

async function quotePool(
  request: SwapRequest,
  buildCall: (trade: PoolTrade) => SwapOfferCall,
): Promise<SwapAnswer> {
  const { venue, from, to, amountIn, slippageBps } = request
  const [sell, buy] = [from, to].map(({ symbol }) => stablecoins.find((one) => one === symbol))
  if (venue === undefined || sell === undefined || buy === undefined || from.chain !== to.chain)
    return { status: 'none', reason: 'unsupported_route' }
  const known = [sell, buy].every((symbol) => venue.chain.tokens[symbol] !== undefined)
  if (!known) return { status: 'none', reason: 'unsupported_route' }
  const amountOut = await venue.chain.signer.readContract({
    address: sandboxPoolAddress,
    abi: poolAbi,
    functionName: 'quote',
    args: [tokenAddress(venue.chain, sell), tokenAddress(venue.chain, buy), amountIn],
  })
  if (typeof amountOut !== 'bigint' || amountOut === 0n) return { status: 'none', reason: 'no_route' }
  const least = (amountOut * BigInt(10_000 - slippageBps)) / SHARE
  return {
    status: 'offered',
    offer: {
      amountOut,
      amountOutMin: least,
      outUsdMicros: worthInMicros(amountOut, to.decimals, to.usdMicros),
      fees: [],
      gasUsdMicros: GAS_USD_MICROS,
      priceImpactBps: findImpact(request, amountOut),
      durationSec: DURATION_SEC,
      call: buildCall({ request, venue, sell, buy, least }),
    },
  }
}

function buildPoolCall({ request, venue, sell, buy, least }: PoolTrade): SwapOfferCall {
  const until = BigInt(Math.floor(venue.at.getTime() / 1_000)) + DEADLINE_SECONDS
  const args = [
    tokenAddress(venue.chain, sell),
    tokenAddress(venue.chain, buy),
    request.amountIn,
    least,
    venue.chain.swapDesk,
    until,
  ] as const
  const data = encodeFunctionData({ abi: poolAbi, functionName: 'swap', args })
  return { target: sandboxPoolAddress, spender: sandboxPoolAddress, data }
}

function buildLiarCall(lie: number, { request, venue, sell, buy }: PoolTrade): SwapOfferCall {
  const { sender } = request
  const second = stablecoins.find(
    (one) => one !== sell && one !== buy && venue.chain.tokens[one] !== undefined,
  )
  const args = [
    lie,
    sandboxPoolAddress,
    tokenAddress(venue.chain, sell),
    tokenAddress(venue.chain, buy),
    request.amountIn,
    sender === null ? venue.chain.swapDesk : toAddress(sender),
    tokenAddress(venue.chain, second ?? sell),
  ] as const
  const data = encodeFunctionData({ abi: liarAbi, functionName: 'swap', args })
  return { target: sandboxLiarAddress, spender: sandboxLiarAddress, data }
}

/** Loss against the reference price, in basis points. */
function findImpact({ from, to, amountIn }: SwapRequest, amountOut: bigint): number {
  const worth = (units: bigint, { decimals, usdMicros }: SwapToken) =>
    worthInMicros(units, decimals, usdMicros)
  const paid = worth(amountIn, from)
  const lost = paid - worth(amountOut, to)
  return paid === 0n || lost <= 0n ? 0 : Number((lost * SHARE) / paid)
}

function isLyingRoute(name: string): name is LyingRoute {
  return Object.hasOwn(lyingRoutes, name)
}

function toAddress(text: string): Address {
  return `0x${text.replace(/^0x/, '')}`
}
