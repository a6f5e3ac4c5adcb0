/** No screening: production without a provider clears no address. */
import { Failure } from '../../core/failures/failure.ts'
import type { AddressScreening } from './port.ts'

export const noScreening: AddressScreening = {
  screen: () =>
    Promise.reject(
      new Failure('screening_unavailable', 'No AML screening provider is configured.', { retryAfter: 60 }),
    ),
}
