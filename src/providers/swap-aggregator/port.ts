/**
 * Swap aggregators: offers for swapping a token on one chain to a token on another. Amounts are in smallest units of
 * their token, dollars in millionths. Adapters: `sandbox` (three of them), `lifi`, `relay`, `zeroex`, `across`;
 * `guarded` wraps each.
 */
import type { SwapToken } from '../../core/money/swap-tokens.ts'

/** A swap request. @property sender EVM address of the swapper; null if the caller has none. */
export interface SwapRequest {
  readonly from: SwapToken
  readonly to: SwapToken
  readonly amountIn: bigint
  readonly slippageBps: number
  readonly sender: string | null
}

/** A fee. @property amount decimal string of the token. @property included whether the output already excludes it. */
export interface SwapFee {
  readonly name: string
  readonly amount: string
  readonly token: string
  readonly usdMicros: bigint
  readonly included: boolean
}

/** An offer. @property outUsdMicros value of the output as stated by the aggregator; null if not stated. */
export interface SwapOffer {
  readonly amountOut: bigint
  readonly amountOutMin: bigint
  readonly outUsdMicros: bigint | null
  readonly fees: readonly SwapFee[]
  /** Gas of the swapper's own transactions; gas on the target chain is part of the fees. */
  readonly gasUsdMicros: bigint
  /** Null if the aggregator does not state it. */
  readonly priceImpactBps: number | null
  readonly durationSec: number
}

/** An answer. `none`: the aggregator works but has no route. */
export type SwapAnswer =
  | { readonly status: 'offered'; readonly offer: SwapOffer }
  | { readonly status: 'none'; readonly reason: 'no_route' | 'unsupported_route' }

export interface SwapAggregator {
  /** Name in answers. */
  readonly tool: string
  /**
   * @param signal ends the wait.
   * @throws Error without a usable answer; its message is a reason, such as `timeout`.
   */
  quote(request: SwapRequest, signal: AbortSignal): Promise<SwapAnswer>
}
