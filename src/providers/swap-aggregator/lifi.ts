/** LI.FI: `GET /v1/quote`. @see https://docs.li.fi/api-reference/get-a-quote-for-a-token-transfer */
import { z } from 'zod'
import { decimalOfUnits } from '../../core/money/money.ts'
import { dollars, isEvmRoute, requestQuote, seconds, units } from './ask.ts'
import type { SwapAggregator, SwapRequest } from './port.ts'

const cost = z.object({
  name: z.string().optional(),
  type: z.string().optional(),
  amount: units,
  amountUSD: dollars.default(0n),
  included: z.boolean().optional(),
  token: z.object({ symbol: z.string(), decimals: z.int().min(0).max(36) }),
})

const quote = z.object({
  estimate: z.object({
    toAmount: units,
    toAmountMin: units,
    toAmountUSD: dollars.nullish(),
    executionDuration: seconds,
    feeCosts: z.array(cost).nullish(),
    gasCosts: z.array(cost).nullish(),
  }),
})

/** The port over the API. @param apiKey raises rate limits; null: none. */
export function createLifi({ url, apiKey }: { url: string; apiKey: string | null }): SwapAggregator {
  return {
    tool: 'lifi',
    quote: async (request, signal) => {
      if (!isEvmRoute(request.from, request.to) || request.sender === null)
        return { status: 'none', reason: 'unsupported_route' }
      const headers = apiKey === null ? {} : { 'x-lifi-api-key': apiKey }
      const answer = await requestQuote(
        { url: `${url}/v1/quote?${buildQuery(request)}`, headers, signal },
        quote,
      )
      if ('status' in answer) return answer
      const { estimate } = answer.found
      return {
        status: 'offered',
        offer: {
          amountOut: estimate.toAmount,
          amountOutMin: estimate.toAmountMin,
          outUsdMicros: estimate.toAmountUSD ?? null,
          fees: (estimate.feeCosts ?? []).map(({ name, amount, amountUSD, included = false, token }) => ({
            name: name ?? 'fee',
            amount: decimalOfUnits(amount, token.decimals),
            token: token.symbol,
            usdMicros: amountUSD,
            included,
          })),
          gasUsdMicros: (estimate.gasCosts ?? []).reduce((sum, { amountUSD }) => sum + amountUSD, 0n),
          priceImpactBps: null,
          durationSec: Math.round(estimate.executionDuration),
        },
      }
    },
  }
}

function buildQuery({ from, to, amountIn, slippageBps, sender }: SwapRequest): URLSearchParams {
  return new URLSearchParams({
    fromChain: String(from.chainId),
    toChain: String(to.chainId),
    fromToken: from.address ?? '',
    toToken: to.address ?? '',
    fromAmount: amountIn.toString(),
    fromAddress: sender ?? '',
    slippage: String(slippageBps / 10_000),
    order: 'CHEAPEST',
  })
}
