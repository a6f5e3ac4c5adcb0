import type { Clock } from '../../core/base/clock.ts'
import type { Config } from '../../core/config/read-config.ts'
import type { Database } from '../../storage/database.ts'
import { cachedRailControls } from './cached.ts'
import { createDatabaseRailControls } from './database.ts'
import type { RailControls } from './port.ts'
import { createRemoteRailControls } from './remote.ts'

/** Rail controls from a control plane, or from the database: there all rails are on in the sandbox and off in production. */
export function createConfiguredRailControls(
  { railControlsUrl, mode }: Pick<Config, 'railControlsUrl' | 'mode'>,
  { database, clock }: { readonly database: Database; readonly clock: Clock },
): RailControls {
  const controls =
    railControlsUrl === null
      ? createDatabaseRailControls({ database, defaultEnabled: mode === 'sandbox' })
      : createRemoteRailControls({ url: railControlsUrl })
  return cachedRailControls({ controls, clock })
}
