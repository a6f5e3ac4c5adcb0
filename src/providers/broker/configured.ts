import type { Clock } from '../../core/base/clock.ts'
import type { Log } from '../../core/base/log.ts'
import type { Config } from '../../core/config/read-config.ts'
import type { Database } from '../../storage/database.ts'
import { createAlpacaBroker } from './alpaca.ts'
import { noBroker } from './none.ts'
import type { Broker } from './port.ts'
import { createSandboxBroker } from './sandbox.ts'

/** The broker of a configuration. Without Alpaca credentials the sandbox has its own, and production has none. */
export function createConfiguredBroker(
  { alpaca, marketHours, mode }: Pick<Config, 'alpaca' | 'marketHours' | 'mode'>,
  { database, clock, log }: { readonly database: Database; readonly clock: Clock; readonly log: Log },
): Broker {
  if (alpaca !== null) return createAlpacaBroker({ ...alpaca, clock, log })
  if (mode === 'production') return noBroker
  return createSandboxBroker({ database, clock, hours: marketHours })
}
