/**
 * Swap aggregators: what somebody would give for a token of one chain in a token of another. Amounts are smallest units of their
 * token, dollars are millionths. Adapters: `sandbox` (three of them), `lifi`, `relay`, `zeroex`, `across`; `guarded` stands in
 * front of each.
 */
import type { SwapToken } from '../money/swap-tokens.ts'

/** What is asked. @property sender who would swap, an EVM address; null where the caller has none. */
export interface SwapRequest {
  readonly from: SwapToken
  readonly to: SwapToken
  readonly amountIn: bigint
  readonly slippageBps: number
  readonly sender: string | null
}

/** A part of the price. @property amount decimal string of the token. @property included the amount out is already less by it. */
export interface SwapFee {
  readonly name: string
  readonly amount: string
  readonly token: string
  readonly usdMicros: bigint
  readonly included: boolean
}

/** What is offered. @property outUsdMicros what they say that the amount out is worth; null where they do not. */
export interface SwapOffer {
  readonly amountOut: bigint
  readonly amountOutMin: bigint
  readonly outUsdMicros: bigint | null
  readonly fees: readonly SwapFee[]
  /** For the transactions of the one who swaps; what they say of the other side's is among the fees. */
  readonly gasUsdMicros: bigint
  /** Null where they do not say. */
  readonly priceImpactBps: number | null
  readonly durationSec: number
}

/** An answer. `none`: they work and have no route for this. */
export type SwapAnswer =
  | { readonly status: 'offered'; readonly offer: SwapOffer }
  | { readonly status: 'none'; readonly reason: 'no_route' | 'unsupported_route' }

/** The port. */
export interface SwapAggregator {
  /** What it is called in answers. */
  readonly tool: string
  /** @param signal ends the wait. @throws Error where no usable answer comes: its message is a reason, such as `timeout`. */
  quote(request: SwapRequest, signal: AbortSignal): Promise<SwapAnswer>
}
