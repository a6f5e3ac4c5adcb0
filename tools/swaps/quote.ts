import { z } from 'zod'
import { toJson } from '../../src/core/base/json.ts'
import { untrustedText } from '../../src/core/base/untrusted-text.ts'
import { decimalAmount, formatUnits } from '../../src/core/money/money.ts'
import { swapChainNames } from '../../src/core/money/swap-tokens.ts'
import { requireCaller } from '../../src/kernel/context.ts'
import { defineTool } from '../../src/kernel/tool.ts'
import type { SwapFee, SwapRequest } from '../../src/providers/swap-aggregator/port.ts'
import { findNamedRoute } from '../../src/rails/swaps/named-route.ts'
import { parsePair, unitsIn } from '../../src/rails/swaps/pair.ts'
import { findVenue, SLIPPAGE_BPS, toExecutable } from '../../src/rails/swaps/plan-swap.ts'
import { QUOTE_MS, quoteSwap, type RankedOffer } from '../../src/rails/swaps/quote-swap.ts'
import { insertQuote } from '../../src/rails/swaps/store.ts'
import { findWallet } from '../../src/rails/wallets/store.ts'

const name = z.string().min(1).max(40)
const chain = name.meta({ enum: [...swapChainNames] })
const usd = (micros: bigint) => formatUnits(micros, 6)

const fee = z.strictObject({
  name: untrustedText('Purpose of the fee.'),
  amount: z.string().describe('Amount as a decimal string of the token.'),
  token: z.string().describe('Symbol of the token the fee is charged in.'),
  amountUsd: z.string().describe('Amount in USD.'),
  included: z.boolean().describe('True if `amountOut` already excludes the fee.'),
})
fee.register(z.globalRegistry, { id: 'SwapFee' })

/** Members that every offer has. */
const brief = {
  tool: z.string().describe('Aggregator of the offer.'),
  amountOut: z.string().describe('Expected output, as a decimal string of the token.'),
  amountOutMin: z.string().describe('Minimum output, as a decimal string of the token.'),
  gasUsd: z.string().describe('Gas cost in USD.'),
  priceImpactBps: z
    .int()
    .nullable()
    .describe('Price impact of the swap, in basis points; null when unknown.'),
  durationSec: z.int().describe('Expected duration, in seconds.'),
  netOutUsd: z.string().describe('Output after fees and gas, in USD; the highest wins.'),
}

export default defineTool({
  name: 'swaps.quote',
  title: 'Swap quote',
  summary: 'Ask all aggregators what a swap of one token to another costs, on the same or another chain.',
  description:
    'Nothing moves. The best offer, after fees and gas, is first and valid for 30 seconds; `executable`: swaps_execute makes it.',
  restOnly: ['route'],
  restDescription:
    '`pair_not_supported` lists tokens and chains; the hint of `no_route` says whether to wait or to change the amount.',
  route: 'POST /api/swaps',
  who: 'account',
  scopes: ['swaps:quote'],
  effect: 'write',
  proof: 'none',
  // Aggregators are called in between, so no transaction may be open.
  ownTransactions: true,
  mcp: true,
  input: z.strictObject({
    fromToken: name.describe('By symbol, such as `USDC`.'),
    toToken: name.describe('By symbol.'),
    fromChain: chain.describe('Chain of `fromToken`.'),
    toChain: chain.optional().describe('Default: `fromChain`.'),
    amountIn: decimalAmount.describe('Decimal of the token.'),
    route: z
      .string()
      .max(40)
      .optional()
      .describe('Asks this aggregator alone. In the sandbox, GET /sandbox/routes lists them.'),
  }),
  output: z.strictObject({
    id: z.string().describe('`quote_…`'),
    ...brief,
    order: z.literal('CHEAPEST').describe('Ranking of the offers.'),
    fromToken: z.string().describe('Token to swap, by symbol.'),
    fromChain: z.string().describe('Chain by name.'),
    amountIn: z.string().describe('Amount to swap, as a decimal string of the token.'),
    toToken: z.string().describe('By symbol.'),
    toChain: z.string().describe('Chain by name.'),
    executable: z.boolean().describe('True: POST /api/swaps/orders executes it.'),
    slippageBps: z.int().describe('Accepted slippage, in basis points.'),
    fees: z.array(fee).describe('Fees of the aggregator and its providers.'),
    expiresAt: z.string().describe('When the quote expires, ISO 8601 UTC.'),
    alternatives: z.array(z.strictObject(brief)).describe('Other offers, best first.'),
    failed: z
      .array(
        z.strictObject({
          tool: z.string().describe('Aggregator without an offer.'),
          reason: z
            .string()
            .describe(
              '`no_route`, `unsupported_route`, `timeout`, `unavailable`, `bad_answer`, `implausible` (output value far above the input) or `circuit_open`.',
            ),
        }),
      )
      .describe('Aggregators without an offer.'),
  }),
  failures: ['pair_not_supported', 'no_route'],
  example: { fromToken: 'USDC', toToken: 'USDT', fromChain: 'base', toChain: 'arbitrum', amountIn: '100' },
  run: async (context, { amountIn, route, ...names }) => {
    const accountId = requireCaller(context).account.id
    const { from, to } = parsePair({ ...names, toChain: names.toChain })
    const venue = findVenue(context, { from, to })
    const request: SwapRequest = {
      from,
      to,
      amountIn: unitsIn(from, amountIn),
      slippageBps: SLIPPAGE_BPS,
      sender: (await findWallet(context.database, accountId)) ?? null,
      venue,
    }
    const { best, alternatives, failed } = await quoteSwap(
      route === undefined ? context.swapAggregators : [findNamedRoute(context, route)],
      request,
    )
    const executable = toExecutable(best, venue, request.amountIn)
    const at = context.clock()
    const id = context.newId('quote', at)
    const expiresAt = new Date(at.getTime() + QUOTE_MS)
    const answer = {
      id,
      ...viewOffer(best, to.decimals),
      order: 'CHEAPEST' as const,
      fromToken: from.symbol,
      fromChain: from.chain,
      amountIn: formatUnits(request.amountIn, from.decimals),
      toToken: to.symbol,
      toChain: to.chain,
      executable: executable !== null,
      slippageBps: SLIPPAGE_BPS,
      fees: best.fees.map(viewFee),
      expiresAt: expiresAt.toISOString(),
      alternatives: alternatives.map((offer) => viewOffer(offer, to.decimals)),
      failed: failed.map(({ tool, reason }) => ({ tool, reason })),
    }
    await insertQuote(context, { id, accountId, answer: toJson(answer), executable, at, expiresAt })
    return answer
  },
})

function viewOffer(offer: RankedOffer, decimals: number) {
  return {
    tool: offer.tool,
    amountOut: formatUnits(offer.amountOut, decimals),
    amountOutMin: formatUnits(offer.amountOutMin, decimals),
    gasUsd: usd(offer.gasUsdMicros),
    priceImpactBps: offer.priceImpactBps,
    durationSec: offer.durationSec,
    netOutUsd: usd(offer.netUsdMicros),
  }
}

function viewFee({ usdMicros, ...shown }: SwapFee) {
  return { ...shown, amountUsd: usd(usdMicros) }
}
