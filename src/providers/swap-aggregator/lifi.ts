/** LI.FI: `GET /v1/quote`. @see https://docs.li.fi/api-reference/get-a-quote-for-a-token-transfer */
import { z } from 'zod'
import { formatUnits } from '../../core/money/money.ts'
import { address, dollars, hex, isEvmRoute, requestQuote, seconds, units } from './ask.ts'
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
  /** The call to make. `value` is native coin, which the desk does not have. */
  transactionRequest: z
    .object({
      to: address,
      data: hex,
      value: z
        .string()
        .regex(/^(0x)?[0-9a-fA-F]*$/)
        .optional(),
    })
    .nullish(),
  estimate: z.object({
    approvalAddress: address.nullish(),
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
      const { estimate, transactionRequest: made } = answer.found
      const isExecutable =
        request.venue !== undefined && made !== undefined && made !== null && BigInt(made.value || '0') === 0n
      return {
        status: 'offered',
        offer: {
          amountOut: estimate.toAmount,
          amountOutMin: estimate.toAmountMin,
          outUsdMicros: estimate.toAmountUSD ?? null,
          fees: (estimate.feeCosts ?? []).map(({ name, amount, amountUSD, included = false, token }) => ({
            name: name ?? 'fee',
            amount: formatUnits(amount, token.decimals),
            token: token.symbol,
            usdMicros: amountUSD,
            included,
          })),
          gasUsdMicros: (estimate.gasCosts ?? []).reduce((sum, { amountUSD }) => sum + amountUSD, 0n),
          priceImpactBps: null,
          durationSec: Math.round(estimate.executionDuration),
          ...(isExecutable
            ? { call: { target: made.to, spender: estimate.approvalAddress ?? null, data: made.data } }
            : {}),
        },
      }
    },
  }
}

/** Where a swap can be executed, the desk makes the call and gets what it buys. */
function buildQuery({ from, to, amountIn, slippageBps, sender, venue }: SwapRequest): URLSearchParams {
  const swapper = venue?.chain.swapDesk ?? sender ?? ''
  return new URLSearchParams({
    fromChain: String(from.chainId),
    toChain: String(to.chainId),
    fromToken: from.address ?? '',
    toToken: to.address ?? '',
    fromAmount: amountIn.toString(),
    fromAddress: swapper,
    ...(venue === undefined ? {} : { toAddress: swapper }),
    slippage: String(slippageBps / 10_000),
    order: 'CHEAPEST',
  })
}
