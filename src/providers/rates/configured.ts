import type { Log } from '../../base/log.ts'
import type { Config } from '../../config/read-config.ts'
import type { Database } from '../../storage/database.ts'
import type { Rates } from '../rates.ts'
import { createEcbRates, ECB_URL } from './ecb.ts'
import { createKeptRates } from './kept.ts'
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
