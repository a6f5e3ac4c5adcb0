/** On-chain coverage of card spending from an owner-held wallet, read before a decision. */
import type { Stablecoin } from '../../core/money/money.ts'

/** A token of the wallet, in smallest units. @property price amount one whole token counts against the allowance. */
export interface CoveredToken {
  readonly token: Stablecoin
  readonly price: bigint
  readonly onChain: bigint
  /** Sum of available and held, read before the chain. */
  readonly booked: bigint
}

/**
 * Coverage as read from the chain.
 * @property leftMicros rest of the card programme's allowance today, in millionths of a US dollar, before holds and
 * pending settlements.
 * @property since time before the chain was read; later settlements may be missing.
 */
export interface Coverage {
  readonly leftMicros: bigint
  readonly since: Date
  readonly place: string
  readonly tokens: readonly CoveredToken[]
}

/** Money that is to be pulled. Units are smallest units. */
export interface Pull {
  readonly asset: string
  readonly units: string
}

/** What a purchase waits for. @property token the processor's name of it. @property coverage on which it was decided. */
export interface WantedPulls {
  readonly accountId: string
  readonly token: string
  readonly pulls: readonly Pull[]
  readonly coverage: Coverage | null
}

/** Parameters of the database functions, in their order. */
type CoverageParameters = readonly [
  left: bigint | null,
  since: Date | null,
  place: string | null,
  tokens: readonly string[],
  prices: readonly string[],
  onChain: readonly string[],
  booked: readonly string[],
]

export function coverageParameters(coverage: Coverage | null): CoverageParameters {
  if (coverage === null) return [null, null, null, [], [], [], []]
  const { leftMicros, since, place, tokens } = coverage
  return [
    leftMicros,
    since,
    place,
    tokens.map(({ token }) => token),
    tokens.map(({ price }) => price.toString()),
    tokens.map(({ onChain }) => onChain.toString()),
    tokens.map(({ booked }) => booked.toString()),
  ]
}
