import { z } from 'zod'
import { toJson } from '../../src/base/json.ts'
import { untrustedText } from '../../src/base/untrusted-text.ts'
import { callerOf } from '../../src/kernel/context.ts'
import { defineTool } from '../../src/kernel/tool.ts'
import { decimalAmount, decimalOfUnits } from '../../src/money/money.ts'
import type { SwapFee, SwapRequest } from '../../src/providers/swap-aggregator.ts'
import { pairOf, unitsIn } from '../../src/swaps/pair.ts'
import { QUOTE_MS, quoteSwap, type RankedOffer } from '../../src/swaps/quote-swap.ts'
import { insertQuote } from '../../src/swaps/store.ts'
import { findWallet } from '../../src/wallets/store.ts'

/** How much less than expected is still taken: 0.5 %. */
const SLIPPAGE_BPS = 50

const name = z.string().min(1).max(40)
const usd = (micros: bigint) => decimalOfUnits(micros, 6)

const fee = z.strictObject({
  name: untrustedText('What it is for.'),
  amount: z.string().describe('Decimal string of the token.'),
  token: z.string().describe('The token that it is taken in.'),
  amountUsd: z.string().describe('The same in USD.'),
  included: z.boolean().describe('Whether `amountOut` is already less by it.'),
})

/** What one aggregator offers, briefly. */
const brief = {
  tool: z.string().describe('Who offers it.'),
  amountOut: z.string().describe('What is expected to come out, as a decimal string of the token.'),
  amountOutMin: z.string().describe('What comes out at least.'),
  gasUsd: z.string().describe('Gas on the way, in USD.'),
  priceImpactBps: z
    .int()
    .nullable()
    .describe('How far the swap moves the price, in basis points; null where nobody says.'),
  durationSec: z.int().describe('How long it is expected to take, in seconds.'),
  netOutUsd: z.string().describe('What is left after fees and gas, in USD: the most wins.'),
}

export default defineTool({
  name: 'swaps.quote',
  title: 'Swap quote',
  summary:
    'Ask aggregators at once for the cheapest way from a token on one chain to a token on another or the same.',
  description:
    'Nothing is moved or held. The cheapest is the one that leaves most after fees and gas. A quote holds for 30 seconds. Tokens and chains, in any case, that are not known are refused with those that are. Where nobody offers a way, `no_route` says in its hint whether to wait or to name another amount.',
  route: 'POST /api/swaps',
  who: 'account',
  scopes: ['swaps:quote'],
  effect: 'write',
  // Others are asked on the way: no transaction may be open meanwhile.
  ownTransactions: true,
  mcp: true,
  input: z.strictObject({
    fromToken: name.describe('Token to swap, by symbol, such as `USDC`.'),
    toToken: name.describe('Token to get, by symbol.'),
    fromChain: name.describe('Chain that the token is on, by name, such as `base`.'),
    toChain: name.optional().describe('Chain to get it on. Absent: the same chain.'),
    amountIn: decimalAmount.describe('How much to swap, as a decimal string or number of the token.'),
  }),
  output: z.strictObject({
    id: z.string().describe('`quote_…`'),
    ...brief,
    order: z.literal('CHEAPEST').describe('What decided.'),
    fromToken: z.string().describe('Symbol.'),
    fromChain: z.string().describe('Chain by name.'),
    amountIn: z.string().describe('Decimal string of the token.'),
    toToken: z.string().describe('Symbol.'),
    toChain: z.string().describe('Chain by name.'),
    slippageBps: z.int().describe('How much less than expected is taken, in basis points.'),
    fees: z.array(fee).describe('What the aggregator and those behind it take.'),
    expiresAt: z.string().describe('Until when the quote holds, ISO 8601 UTC.'),
    alternatives: z.array(z.strictObject(brief)).describe('The other offers, best first.'),
    failed: z
      .array(
        z.strictObject({
          tool: z.string().describe('Who offered nothing.'),
          reason: z
            .string()
            .describe(
              '`no_route`, `unsupported_route`, `timeout`, `unavailable`, `bad_answer`, `implausible` (worth far more than what goes in) or `circuit_open`.',
            ),
        }),
      )
      .describe('Who was asked in vain.'),
  }),
  failures: ['pair_not_supported', 'no_route'],
  example: { fromToken: 'USDC', toToken: 'USDT', fromChain: 'base', toChain: 'arbitrum', amountIn: '100' },
  run: async (context, { amountIn, ...names }) => {
    const accountId = callerOf(context).account.id
    const { from, to } = pairOf({ ...names, toChain: names.toChain })
    const request: SwapRequest = {
      from,
      to,
      amountIn: unitsIn(from, amountIn),
      slippageBps: SLIPPAGE_BPS,
      sender: (await findWallet(context.database, accountId)) ?? null,
    }
    const { best, alternatives, failed } = await quoteSwap(context.swapAggregators, request)
    const at = context.clock()
    const id = context.newId('quote', at)
    const expiresAt = new Date(at.getTime() + QUOTE_MS)
    const answer = {
      id,
      ...viewOffer(best, to.decimals),
      order: 'CHEAPEST' as const,
      fromToken: from.symbol,
      fromChain: from.chain,
      amountIn: decimalOfUnits(request.amountIn, from.decimals),
      toToken: to.symbol,
      toChain: to.chain,
      slippageBps: SLIPPAGE_BPS,
      fees: best.fees.map(viewFee),
      expiresAt: expiresAt.toISOString(),
      alternatives: alternatives.map((offer) => viewOffer(offer, to.decimals)),
      failed: failed.map(({ tool, reason }) => ({ tool, reason })),
    }
    await insertQuote(context.database, { id, accountId, answer: toJson(answer), at, expiresAt })
    return answer
  },
})

function viewOffer(offer: RankedOffer, decimals: number) {
  return {
    tool: offer.tool,
    amountOut: decimalOfUnits(offer.amountOut, decimals),
    amountOutMin: decimalOfUnits(offer.amountOutMin, decimals),
    gasUsd: usd(offer.gasUsdMicros),
    priceImpactBps: offer.priceImpactBps,
    durationSec: offer.durationSec,
    netOutUsd: usd(offer.netUsdMicros),
  }
}

function viewFee({ usdMicros, ...shown }: SwapFee) {
  return { ...shown, amountUsd: usd(usdMicros) }
}
