/** On-chain coverage of card spending from an owner-held wallet, read before a decision from each chain. */
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

/** Money that is to be pulled. Units are smallest units. @property place the chain. */
export interface Pull {
  readonly place: string
  readonly asset: string
  readonly units: string
}

/** What a purchase waits for. @property token the processor's name of it. @property coverages on which it was decided. */
export interface WantedPulls {
  readonly accountId: string
  readonly token: string
  readonly pulls: readonly Pull[]
  readonly coverages: readonly Coverage[]
}

/** Parameters of the database functions, in their order: one row for each token of each chain. */
type CoverageParameters = readonly [
  since: Date | null,
  chains: readonly string[],
  left: readonly string[],
  tokens: readonly string[],
  prices: readonly string[],
  onChain: readonly string[],
  booked: readonly string[],
]

/** @param coverages of the chains that could be read. */
export function coverageParameters(coverages: readonly Coverage[]): CoverageParameters {
  const rows = coverages.flatMap(({ place, leftMicros, tokens }) =>
    tokens.map((token) => ({ ...token, place, leftMicros })),
  )
  return [
    coverages.reduce<Date | null>(
      (first, { since }) => (first === null || since < first ? since : first),
      null,
    ),
    rows.map(({ place }) => place),
    rows.map(({ leftMicros }) => leftMicros.toString()),
    rows.map(({ token }) => token),
    rows.map(({ price }) => price.toString()),
    rows.map(({ onChain }) => onChain.toString()),
    rows.map(({ booked }) => booked.toString()),
  ]
}

/** Parameters of card_pull_begin about the chain that it pulls on. */
type PullParameters = readonly [
  left: bigint | null,
  since: Date | null,
  tokens: readonly string[],
  prices: readonly string[],
]

/** @param coverage null: the chain was not read. */
export function pullParameters(coverage: Coverage | null): PullParameters {
  if (coverage === null) return [null, null, [], []]
  const { leftMicros, since, tokens } = coverage
  return [leftMicros, since, tokens.map(({ token }) => token), tokens.map(({ price }) => price.toString())]
}
