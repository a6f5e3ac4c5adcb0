import type { Log } from '../../core/base/log.ts'
import type { Config } from '../../core/config/read-config.ts'
import { createSanctionsFile } from './file.ts'
import { createOfacExcerpt } from './ofac-excerpt.ts'
import type { Sanctions } from './port.ts'

/** The sanctions list of a configuration, or the excerpt that ships with the gateway. */
export function createConfiguredSanctions(
  { sanctionsList }: Pick<Config, 'sanctionsList'>,
  log: Log,
): Sanctions {
  return sanctionsList === null ? createOfacExcerpt() : createSanctionsFile({ path: sanctionsList, log })
}
