/** Across: `GET /swap/approval`. @see https://docs.across.to/api-reference/swap/approval/get */
import { z } from 'zod'
import { decimalOfUnits } from '../../core/money/money.ts'
import { dollars, isEvmRoute, requestQuote, seconds, units } from './ask.ts'
import type { SwapAggregator, SwapRequest } from './port.ts'

const fee = z.object({
  amount: units,
  amountUsd: dollars,
  token: z.object({ symbol: z.string(), decimals: z.int().min(0).max(36) }),
})

const quote = z.object({
  expectedOutputAmount: units,
  minOutputAmount: units,
  expectedFillTime: seconds,
  fees: z.object({ total: fee, originGas: fee }),
})

/** The port over the API. @param apiKey null: sends none. */
export function createAcross({ url, apiKey }: { url: string; apiKey: string | null }): SwapAggregator {
  return {
    tool: 'across',
    quote: async (request, signal) => {
      const { from, to, sender } = request
      if (!isEvmRoute(from, to) || sender === null || from.chain === to.chain)
        return { status: 'none', reason: 'unsupported_route' }
      const headers = apiKey === null ? {} : { authorization: `Bearer ${apiKey}` }
      const answer = await requestQuote(
        { url: `${url}/swap/approval?${buildQuery(request)}`, headers, signal },
        quote,
      )
      if ('status' in answer) return answer
      const { expectedOutputAmount, minOutputAmount, expectedFillTime, fees } = answer.found
      const { total, originGas } = fees
      return {
        status: 'offered',
        offer: {
          amountOut: expectedOutputAmount,
          amountOutMin: minOutputAmount,
          outUsdMicros: null,
          fees: [
            {
              name: 'total',
              amount: decimalOfUnits(total.amount, total.token.decimals),
              token: total.token.symbol,
              usdMicros: total.amountUsd,
              included: true,
            },
          ],
          gasUsdMicros: originGas.amountUsd,
          priceImpactBps: null,
          durationSec: Math.round(expectedFillTime),
        },
      }
    },
  }
}

function buildQuery({ from, to, amountIn, slippageBps, sender }: SwapRequest): URLSearchParams {
  return new URLSearchParams({
    tradeType: 'exactInput',
    originChainId: String(from.chainId),
    destinationChainId: String(to.chainId),
    inputToken: from.address ?? '',
    outputToken: to.address ?? '',
    amount: amountIn.toString(),
    depositor: sender ?? '',
    slippage: String(slippageBps / 10_000),
  })
}
