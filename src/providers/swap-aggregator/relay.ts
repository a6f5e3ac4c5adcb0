/** Relay: `POST /quote/v2`. @see https://docs.relay.link/references/api/get-quote-v2 */
import { z } from 'zod'
import { dollars, isEvmRoute, requestQuote, seconds, units } from './ask.ts'
import type { SwapAggregator, SwapFee } from './port.ts'

const decimal = z.string().regex(/^-?\d{1,36}(\.\d{1,36})?$/)

const fee = z.object({
  currency: z.object({ symbol: z.string() }),
  amountFormatted: decimal,
  amountUsd: z.string(),
})

const quote = z.object({
  fees: z.object({ gas: fee.optional(), relayer: fee.optional(), app: fee.optional() }),
  details: z.object({
    currencyOut: z.object({ amount: units, amountUsd: dollars.nullish(), minimumAmount: units.nullish() }),
    timeEstimate: seconds.nullish(),
    totalImpact: z.object({ percent: decimal }).nullish(),
  }),
})

export function createRelay({ url, apiKey }: { url: string; apiKey: string | null }): SwapAggregator {
  return {
    tool: 'relay',
    quote: async ({ from, to, amountIn, slippageBps, sender }, signal) => {
      if (!isEvmRoute(from, to) || sender === null) return { status: 'none', reason: 'unsupported_route' }
      const body = {
        user: sender,
        originChainId: from.chainId,
        destinationChainId: to.chainId,
        originCurrency: from.address,
        destinationCurrency: to.address,
        amount: amountIn.toString(),
        tradeType: 'EXACT_INPUT',
        slippageTolerance: String(slippageBps),
      }
      const headers = apiKey === null ? {} : { 'x-api-key': apiKey }
      const answer = await requestQuote({ url: `${url}/quote/v2`, body, headers, signal }, quote)
      if ('status' in answer) return answer
      const { fees, details } = answer.found
      const { amount, amountUsd, minimumAmount } = details.currencyOut
      return {
        status: 'offered',
        offer: {
          amountOut: amount,
          amountOutMin: minimumAmount ?? (amount * BigInt(10_000 - slippageBps)) / 10_000n,
          outUsdMicros: amountUsd ?? null,
          // Relay deducts its fees from the output.
          fees: [...listFee('relayer', fees.relayer), ...listFee('app', fees.app)],
          gasUsdMicros: parseMicros(fees.gas),
          priceImpactBps: toImpactBps(details.totalImpact?.percent),
          durationSec: Math.round(details.timeEstimate ?? 0),
        },
      }
    },
  }
}

function listFee(name: string, found: z.output<typeof fee> | undefined): SwapFee[] {
  if (found === undefined) return []
  const { amountFormatted: amount, currency } = found
  return [{ name, amount, token: currency.symbol, usdMicros: parseMicros(found), included: true }]
}

/** Negative costs count as zero. */
function parseMicros(found: z.output<typeof fee> | undefined): bigint {
  return dollars.safeParse(found?.amountUsd).data ?? 0n
}

function toImpactBps(percent: string | undefined): number | null {
  return percent === undefined ? null : Math.max(0, Math.round(-Number(percent) * 100))
}
