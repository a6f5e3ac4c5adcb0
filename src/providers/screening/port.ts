/** AML screening of on-chain addresses. */
import type { Address } from '../chain/port.ts'

/** Result for an address. `lists` names the lists that matched, or those that were checked. */
export interface Screening {
  readonly result: 'clear' | 'review' | 'blocked'
  readonly lists: readonly string[]
}

export interface AddressScreening {
  /** @throws Failure `screening_unavailable` when there is no answer; then nothing may be sent. */
  screen(address: Address): Promise<Screening>
}
