/** No broker: nothing is bought or sold, and nothing is said of prices. */
import { Failure } from '../../failures/failure.ts'
import type { Broker } from '../broker.ts'

const refuse = () =>
  Promise.reject(
    new Failure('provider_unavailable', 'No broker is configured; nothing was done.', { retryAfter: 60 }),
  )

/** The broker port where there is none. */
export const noBroker: Broker = {
  name: 'none',
  isOpenTo: () => true,
  instrument: refuse,
  quotes: refuse,
  history: refuse,
  place: refuse,
  find: refuse,
  cancel: refuse,
  // Without a broker nobody has shares: an empty calendar is the truth, and keeps the job quiet.
  dividends: async () => [],
}
