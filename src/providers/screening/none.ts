/** No screening at all: production without a provider clears nobody. */
import { Failure } from '../../failures/failure.ts'
import type { AddressScreening } from '../screening.ts'

/** The screening port where nobody is there to be asked. */
export const noScreening: AddressScreening = {
  screen: () =>
    Promise.reject(
      new Failure('screening_unavailable', 'No provider of AML screening is configured.', { retryAfter: 60 }),
    ),
}
