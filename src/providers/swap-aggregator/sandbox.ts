/**
 * The sandbox's aggregators: its market, whose offers can be executed, and three with different fee models, so that the cheapest
 * one depends on amount and route. The three use reference prices and answer at once.
 */
import { formatUnits } from '../../core/money/money.ts'
import { minimum } from '../../core/money/shares.ts'
import { type SwapChain, type SwapToken, worthInMicros } from '../../core/money/swap-tokens.ts'
import type { SwapAggregator, SwapOffer, SwapRequest } from './port.ts'
import { createSandboxPool } from './sandbox-pool.ts'

/** Fee model of an aggregator. Dollars in millionths, shares in basis points (1/10,000). */
interface FeeModel {
  readonly tool: string
  readonly fixedUsdMicros: bigint
  readonly shareBps: bigint
  /** Gas of the swapper's transactions, as a multiple of a plain swap. */
  readonly gasFactor: bigint
  /** Dollars that move the price by one basis point. */
  readonly depthUsd: bigint
  /** Added for different tokens. */
  readonly spreadBps: bigint
  readonly durationSec: number
  readonly without: readonly SwapChain[]
}

const models: readonly FeeModel[] = [
  // A flat fee: cheap for large amounts.
  {
    tool: 'sandbox-flat',
    fixedUsdMicros: 900_000n,
    shareBps: 1n,
    gasFactor: 1n,
    depthUsd: 100_000n,
    spreadBps: 1n,
    durationSec: 20,
    without: [],
  },
  // A percentage: cheap for small amounts.
  {
    tool: 'sandbox-share',
    fixedUsdMicros: 0n,
    shareBps: 9n,
    gasFactor: 1n,
    depthUsd: 20_000n,
    spreadBps: 4n,
    durationSec: 8,
    without: ['solana'],
  },
  // Many transactions and low fees: cheap where gas is cheap.
  {
    tool: 'sandbox-gas',
    fixedUsdMicros: 0n,
    shareBps: 3n,
    gasFactor: 12n,
    depthUsd: 50_000n,
    spreadBps: 2n,
    durationSec: 180,
    without: [],
  },
]

/** Gas of a plain swap on each chain, in millionths of a USD. */
const gas: Readonly<Record<SwapChain, bigint>> = {
  ethereum: 2_400_000n,
  base: 12_000n,
  arbitrum: 20_000n,
  optimism: 15_000n,
  polygon: 8_000n,
  solana: 1_500n,
  'base-sepolia': 10_000n,
  'arbitrum-sepolia': 10_000n,
}

export function createSandboxAggregators(): readonly SwapAggregator[] {
  return [createSandboxPool(), ...models.map(createModelled)]
}

function createModelled(model: FeeModel): SwapAggregator {
  return {
    tool: model.tool,
    quote: async (request) => {
      if ([request.from.chain, request.to.chain].some((chain) => model.without.includes(chain)))
        return { status: 'none', reason: 'unsupported_route' }
      const offer = buildOffer(model, request)
      return offer.amountOut > 0n ? { status: 'offered', offer } : { status: 'none', reason: 'no_route' }
    },
  }
}

const SHARE = 10_000n

function buildOffer(model: FeeModel, { from, to, amountIn, slippageBps }: SwapRequest): SwapOffer {
  const inMicros = worthInMicros(amountIn, from.decimals, from.usdMicros)
  const shareMicros = (inMicros * model.shareBps + SHARE - 1n) / SHARE
  const feeMicros = model.fixedUsdMicros + shareMicros
  const spreadBps = from.symbol === to.symbol ? 0n : model.spreadBps
  const impactBps = inMicros / 1_000_000n / model.depthUsd
  const lostMicros = (inMicros * minimum(spreadBps + impactBps, SHARE) + SHARE - 1n) / SHARE
  const outMicros = inMicros - feeMicros - lostMicros
  const amountOut = outMicros <= 0n ? 0n : tokensFor(to, outMicros)
  return {
    amountOut,
    amountOutMin: (amountOut * BigInt(10_000 - slippageBps)) / SHARE,
    outUsdMicros: worthInMicros(amountOut, to.decimals, to.usdMicros),
    fees: [
      {
        name: model.fixedUsdMicros === 0n ? 'share' : 'flat and share',
        amount: formatUnits(tokensFor(to, feeMicros), to.decimals),
        token: to.symbol,
        usdMicros: feeMicros,
        included: true,
      },
    ],
    gasUsdMicros: gas[from.chain] * model.gasFactor,
    priceImpactBps: Number(minimum(impactBps, SHARE)),
    durationSec: model.durationSec,
  }
}

function tokensFor({ decimals, usdMicros }: SwapToken, micros: bigint): bigint {
  return (micros * 10n ** BigInt(decimals)) / usdMicros
}
