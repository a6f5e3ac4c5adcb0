/** 0x: `GET /cross-chain/quotes`, using the best quote of the answer. @see https://0x.org/docs/api#tag/Cross-Chain */
import { z } from 'zod'
import { decimalOfUnits } from '../../core/money/money.ts'
import { findSwapToken, type SwapToken, worthInMicros } from '../../core/money/swap-tokens.ts'
import { isEvmRoute, requestQuote, seconds, units } from './ask.ts'
import type { SwapAggregator, SwapFee, SwapRequest } from './port.ts'

const fee = z.object({ amount: units, token: z.string() }).nullish()

const one = z.object({
  buyAmount: units,
  minBuyAmount: units,
  estimatedTimeSeconds: seconds.nullish(),
  fees: z.object({ integratorFee: fee, zeroExFee: fee, bridgeNativeFee: fee }),
  gasCosts: z.object({ gasPrice: units.nullish(), gasLimit: units.nullish() }).nullish(),
})

const quotes = z.union([
  z.object({ liquidityAvailable: z.literal(true), quotes: z.array(one).min(1) }),
  z.object({ liquidityAvailable: z.literal(false) }),
])

/** 0x's placeholder address for a chain's native coin. */
const COIN = '0xeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee'
const ZERO = '0x0000000000000000000000000000000000000000'

/** The port over the API. @param apiKey required by 0x. */
export function createZeroEx({ url, apiKey }: { url: string; apiKey: string | null }): SwapAggregator {
  return {
    tool: '0x',
    quote: async (request, signal) => {
      const { from, to, sender } = request
      // This API only bridges; swaps within one chain use another one.
      if (!isEvmRoute(from, to) || sender === null || from.chain === to.chain)
        return { status: 'none', reason: 'unsupported_route' }
      const headers = { '0x-version': 'v2', ...(apiKey === null ? {} : { '0x-api-key': apiKey }) }
      const question = { url: `${url}/cross-chain/quotes?${buildQuery(request)}`, headers, signal }
      const answer = await requestQuote(question, quotes)
      if ('status' in answer) return answer
      const best = answer.found.liquidityAvailable ? answer.found.quotes[0] : undefined
      if (best === undefined) return { status: 'none', reason: 'no_route' }
      const { gasPrice, gasLimit } = best.gasCosts ?? {}
      return {
        status: 'offered',
        offer: {
          amountOut: best.buyAmount,
          amountOutMin: best.minBuyAmount,
          outUsdMicros: null,
          fees: [
            ...listFee('0x', best.fees.zeroExFee, { from, to, included: true }),
            ...listFee('integrator', best.fees.integratorFee, { from, to, included: true }),
            // Paid on top, with the transaction's value.
            ...listFee('bridge', best.fees.bridgeNativeFee, { from, to, included: false }),
          ],
          gasUsdMicros: coinWorth(from, (gasPrice ?? 0n) * (gasLimit ?? 0n)),
          priceImpactBps: null,
          durationSec: Math.round(best.estimatedTimeSeconds ?? 0),
        },
      }
    },
  }
}

function buildQuery({ from, to, amountIn, slippageBps, sender }: SwapRequest): URLSearchParams {
  const toAddress = ({ address }: SwapToken) => (address === ZERO ? COIN : (address ?? ''))
  return new URLSearchParams({
    originChain: String(from.chainId),
    destinationChain: String(to.chainId),
    sellToken: toAddress(from),
    buyToken: toAddress(to),
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
  const amount = decimalOfUnits(found.amount, token.decimals)
  return [{ name, amount, token: token.symbol, usdMicros, included }]
}
