/** The broker port without a broker: rejects orders and has no prices. */
import { Failure } from '../../core/failures/failure.ts'
import type { Broker } from './port.ts'

const refuse = () =>
  Promise.reject(
    new Failure('provider_unavailable', 'No broker is configured; nothing was done.', { retryAfter: 60 }),
  )

export const noBroker: Broker = {
  name: 'none',
  accounts: null,
  instrument: refuse,
  quotes: refuse,
  history: refuse,
  place: refuse,
  find: refuse,
  cancel: refuse,
  // Without a broker there are no shares, so an empty calendar is correct and the dividend job has nothing to do.
  dividends: async () => [],
}
