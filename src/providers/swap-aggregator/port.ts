/**
 * Swap aggregators: offers for swapping a token on one chain to a token on another. Amounts are in smallest units of
 * their token, dollars in millionths. Adapters: `sandbox` (three of them), `lifi`, `relay`, `zeroex`, `across`;
 * `guarded` wraps each.
 */
import type { SwapToken } from '../../core/money/swap-tokens.ts'
import type { Address, BurnTerms, Chain, Hex } from '../chain/port.ts'

/**
 * One of the gateway's chains, on which a swap can be executed by its desk.
 * @property destination chain on which it arrives; absent: the same.
 */
export interface SwapVenue {
  readonly chain: Pick<Chain, 'name' | 'signer' | 'swapDesk' | 'tokens'>
  readonly at: Date
  readonly destination?: Pick<Chain, 'name' | 'signer'>
}

/**
 * A swap request.
 * @property sender EVM address of the swapper; null if the caller has none.
 * @property venue where the swap can be executed: an offer with a call is asked for; absent: only its price.
 */
export interface SwapRequest {
  readonly from: SwapToken
  readonly to: SwapToken
  readonly amountIn: bigint
  readonly slippageBps: number
  readonly sender: string | null
  readonly venue?: SwapVenue | undefined
}

/**
 * The call that swaps, made by the desk with the tokens of the request, which are back at the desk when it ends.
 * @property spender contract that takes the tokens from the desk; null: none does.
 */
export interface SwapOfferCall {
  readonly target: Address
  readonly spender: Address | null
  readonly data: Hex
  /** Present: the tokens are burned, to be minted on another chain. */
  readonly burn?: BurnTerms | undefined
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
  /** Absent: the offer is a price only. */
  readonly call?: SwapOfferCall
}

/** An answer. `none`: the aggregator works but has no route. */
export type SwapAnswer =
  | { readonly status: 'offered'; readonly offer: SwapOffer }
  | { readonly status: 'none'; readonly reason: 'no_route' | 'unsupported_route' }

export interface SwapAggregator {
  /** Name in answers. */
  readonly tool: string
  /** It is asked only for what can be executed. */
  readonly isLocal?: true
  /**
   * @param signal ends the wait.
   * @throws Error without a usable answer; its message is a reason, such as `timeout`.
   */
  quote(request: SwapRequest, signal: AbortSignal): Promise<SwapAnswer>
}
