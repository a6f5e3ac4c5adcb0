import type { Log } from '../../core/base/log.ts'
import type { Config } from '../../core/config/read-config.ts'
import type { Database } from '../../storage/database.ts'
import { createEcbRates, ECB_URL } from './ecb.ts'
import { createKeptRates } from './kept.ts'
import type { Rates } from './port.ts'
import { createSandboxRates } from './sandbox.ts'

/** Reference rates: the ECB's, except in a sandbox that names no source. Production never prices by the sandbox's snapshot. */
export function createConfiguredRates(
  { mode, fxRatesUrl }: Pick<Config, 'mode' | 'fxRatesUrl'>,
  { database, log }: { database: Pick<Database, 'kysely'>; log: Log },
): Rates {
  if (mode === 'sandbox' && fxRatesUrl === null) return createSandboxRates()
  const url = fxRatesUrl ?? ECB_URL
  return createEcbRates({ url, log, kept: createKeptRates(database, url) })
}
