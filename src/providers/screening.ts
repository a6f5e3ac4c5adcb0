/** AML screening of on-chain addresses. */
import type { Address } from './chain.ts'

/** What the lists say of an address. `lists` names those that were consulted or hit. */
export interface Screening {
  readonly result: 'clear' | 'review' | 'blocked'
  readonly lists: readonly string[]
}

/** The screening port. */
export interface AddressScreening {
  /** @throws Failure `screening_unavailable` where no answer can be had: nothing may then be sent. */
  screen(address: Address): Promise<Screening>
}
