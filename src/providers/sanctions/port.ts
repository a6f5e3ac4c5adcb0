/** Sanctions lists of blocked payees. */

/**
 * A sanctions list.
 * @property name name used in answers.
 * @property date publication date of its source, `YYYY-MM-DD`.
 * @property addresses lower case; an EVM address applies on every EVM chain.
 * @property names names of persons and organisations.
 */
export interface SanctionsList {
  readonly name: string
  readonly source: string
  readonly date: string
  readonly addresses: ReadonlySet<string>
  readonly names: readonly string[]
}

export interface Sanctions {
  /**
   * Reads the current list.
   * @throws Failure `screening_unavailable` when it cannot be read; then nothing may be sent.
   */
  latest(): Promise<SanctionsList>
}
