/** What the chain lets cards take of a wallet that its owner holds, as it was read before a decision. */
import type { Stablecoin } from '../money/money.ts'

/** A token of the wallet, in smallest units. @property price what a whole token counts as in the allowance. */
export interface CoveredToken {
  readonly token: Stablecoin
  readonly price: bigint
  readonly onChain: bigint
  /** Available and held together, read before the chain was. */
  readonly booked: bigint
}

/**
 * What the chain said. @property leftMicros of the card programme's allowance today, in millionths of a US dollar; what is
 * held or under way is not taken off yet. @property since before the chain was read: what was settled later may be missing.
 */
export interface Coverage {
  readonly leftMicros: bigint
  readonly since: Date
  readonly place: string
  readonly tokens: readonly CoveredToken[]
}

/** The parameters of the database's functions, in their order. */
type CoverageParameters = readonly [
  left: bigint | null,
  since: Date | null,
  place: string | null,
  tokens: readonly string[],
  prices: readonly string[],
  onChain: readonly string[],
  booked: readonly string[],
]

/** The coverage as parameters of a statement. */
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
