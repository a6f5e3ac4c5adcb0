/**
 * 0x: within a chain the firm quote of `GET /swap/allowance-holder/quote`, whose call can be executed; between chains the best of
 * `GET /cross-chain/quotes`, a price only.
 * @see https://0x.org/docs/api#tag/Swap @see https://0x.org/docs/api#tag/Cross-Chain
 */
import { z } from 'zod'
import { formatUnits } from '../../core/money/money.ts'
import { findSwapToken, type SwapToken, worthInMicros } from '../../core/money/swap-tokens.ts'
import { address, hex, isEvmRoute, requestQuote, seconds, units } from './ask.ts'
import type { SwapAggregator, SwapAnswer, SwapFee, SwapOffer, SwapRequest } from './port.ts'

const fee = z.object({ amount: units, token: z.string() }).nullish()

const one = z.object({
  buyAmount: units,
  minBuyAmount: units,
  estimatedTimeSeconds: seconds.nullish(),
  fees: z.object({ integratorFee: fee, zeroExFee: fee, bridgeNativeFee: fee }),
  gasCosts: z.object({ gasPrice: units.nullish(), gasLimit: units.nullish() }).nullish(),
})

const noLiquidity = z.object({ liquidityAvailable: z.literal(false) })

const quotes = z.union([
  z.object({ liquidityAvailable: z.literal(true), quotes: z.array(one).min(1) }),
  noLiquidity,
])

const swap = z.union([
  z.object({
    liquidityAvailable: z.literal(true),
    sellToken: address,
    sellAmount: units,
    buyToken: address,
    buyAmount: units,
    minBuyAmount: units,
    allowanceTarget: address.nullish(),
    /** Worth of the gas in the native coin, in wei. */
    totalNetworkFee: units.nullish(),
    fees: z.object({ integratorFee: fee, zeroExFee: fee }),
    transaction: z.object({ to: address, data: hex, value: units }),
  }),
  noLiquidity,
])

/** Within a chain it is one transaction. */
const SWAP_SECONDS = 2

/** 0x's placeholder address for a chain's native coin. */
const COIN = '0xeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee'
const ZERO = '0x0000000000000000000000000000000000000000'

/** The port over the API. @param apiKey required by 0x. */
export function createZeroEx({ url, apiKey }: { url: string; apiKey: string | null }): SwapAggregator {
  return {
    tool: '0x',
    quote: async (request, signal) => {
      const { from, to, sender } = request
      if (!isEvmRoute(from, to) || sender === null) return { status: 'none', reason: 'unsupported_route' }
      const headers = { '0x-version': 'v2', ...(apiKey === null ? {} : { '0x-api-key': apiKey }) }
      const question = { headers, signal }
      return from.chain === to.chain
        ? quoteSwap(request, { ...question, url: `${url}/swap/allowance-holder/quote?${querySwap(request)}` })
        : quoteBridge(request, { ...question, url: `${url}/cross-chain/quotes?${queryBridge(request)}` })
    },
  }
}

type Question = Parameters<typeof requestQuote>[0]

async function quoteBridge({ from, to }: SwapRequest, question: Question): Promise<SwapAnswer> {
  const answer = await requestQuote(question, quotes)
  if ('status' in answer) return answer
  const best = answer.found.liquidityAvailable ? answer.found.quotes[0] : undefined
  if (best === undefined) return { status: 'none', reason: 'no_route' }
  const { gasPrice, gasLimit } = best.gasCosts ?? {}
  return offered({
    amountOut: best.buyAmount,
    amountOutMin: best.minBuyAmount,
    fees: [
      ...listFee('0x', best.fees.zeroExFee, { from, to, included: true }),
      ...listFee('integrator', best.fees.integratorFee, { from, to, included: true }),
      // Paid on top, with the transaction's value.
      ...listFee('bridge', best.fees.bridgeNativeFee, { from, to, included: false }),
    ],
    gasUsdMicros: coinWorth(from, (gasPrice ?? 0n) * (gasLimit ?? 0n)),
    durationSec: Math.round(best.estimatedTimeSeconds ?? 0),
  })
}

async function quoteSwap(request: SwapRequest, question: Question): Promise<SwapAnswer> {
  const answer = await requestQuote(question, swap)
  if ('status' in answer) return answer
  const { found } = answer
  if (!found.liquidityAvailable) return { status: 'none', reason: 'no_route' }
  const { from, to, amountIn, venue } = request
  const isAsked =
    isToken(from, found.sellToken) && isToken(to, found.buyToken) && found.sellAmount === amountIn
  if (!isAsked) throw new Error('bad_answer')
  const { transaction } = found
  // The desk has no native coin.
  const isExecutable = venue !== undefined && transaction.value === 0n
  return offered({
    amountOut: found.buyAmount,
    amountOutMin: found.minBuyAmount,
    fees: [
      ...listFee('0x', found.fees.zeroExFee, { from, to, included: true }),
      ...listFee('integrator', found.fees.integratorFee, { from, to, included: true }),
    ],
    gasUsdMicros: coinWorth(from, found.totalNetworkFee ?? 0n),
    durationSec: SWAP_SECONDS,
    ...(isExecutable
      ? { call: { target: transaction.to, spender: found.allowanceTarget ?? null, data: transaction.data } }
      : {}),
  })
}

const offered = (offer: Omit<SwapOffer, 'outUsdMicros' | 'priceImpactBps'>): SwapAnswer => ({
  status: 'offered',
  offer: { outUsdMicros: null, priceImpactBps: null, ...offer },
})

const isToken = (token: SwapToken, named: string) => nameToken(token).toLowerCase() === named.toLowerCase()

const nameToken = ({ address }: SwapToken) => (address === ZERO ? COIN : (address ?? ''))

/** Where it can be executed, the desk makes the call and gets what it buys. */
function querySwap({ from, to, amountIn, slippageBps, sender, venue }: SwapRequest): URLSearchParams {
  return new URLSearchParams({
    chainId: String(from.chainId),
    sellToken: nameToken(from),
    buyToken: nameToken(to),
    sellAmount: amountIn.toString(),
    taker: venue?.chain.swapDesk ?? sender ?? '',
    slippageBps: String(slippageBps),
  })
}

function queryBridge({ from, to, amountIn, slippageBps, sender }: SwapRequest): URLSearchParams {
  return new URLSearchParams({
    originChain: String(from.chainId),
    destinationChain: String(to.chainId),
    sellToken: nameToken(from),
    buyToken: nameToken(to),
    sellAmount: amountIn.toString(),
    originAddress: sender ?? '',
    slippageBps: String(slippageBps),
    sortQuotesBy: 'price',
    maxNumQuotes: '1',
  })
}

/** Value of an amount of native coin. */
function coinWorth({ chain }: SwapToken, wei: bigint): bigint {
  const coin = findSwapToken(chain, chain === 'polygon' ? 'POL' : 'ETH')
  return coin === undefined ? 0n : worthInMicros(wei, coin.decimals, coin.usdMicros)
}

/** Formats a fee in one of the two tokens or in native coin; fees in other tokens have no known amount. */
function listFee(
  name: string,
  found: z.output<typeof fee>,
  { from, to, included }: { from: SwapToken; to: SwapToken; included: boolean },
): SwapFee[] {
  if (found === undefined || found === null || found.amount === 0n) return []
  const address = found.token.toLowerCase()
  const isCoin = address === COIN || address === ZERO
  const coin = isCoin ? findSwapToken(from.chain, from.chain === 'polygon' ? 'POL' : 'ETH') : undefined
  const token = coin ?? [from, to].find((each) => each.address?.toLowerCase() === address)
  if (token === undefined) throw new Error('bad_answer')
  const usdMicros = worthInMicros(found.amount, token.decimals, token.usdMicros)
  const amount = formatUnits(found.amount, token.decimals)
  return [{ name, amount, token: token.symbol, usdMicros, included }]
}
