/** Sanctions lists: who must not be paid. */

/**
 * A list as it stands. @property name what answers call it. @property date when its source published it, `YYYY-MM-DD`.
 * @property addresses lower case; an EVM address holds on every EVM chain. @property names of persons and organisations.
 */
export interface SanctionsList {
  readonly name: string
  readonly source: string
  readonly date: string
  readonly addresses: ReadonlySet<string>
  readonly names: readonly string[]
}

/** The sanctions port. */
export interface Sanctions {
  /** The list of this moment. @throws Failure `screening_unavailable` where it cannot be read: nothing may then be sent. */
  latest(): Promise<SanctionsList>
}
