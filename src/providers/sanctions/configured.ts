import type { Log } from '../../base/log.ts'
import type { Config } from '../../config/read-config.ts'
import type { Sanctions } from '../sanctions.ts'
import { createSanctionsFile } from './file.ts'
import { createOfacExcerpt } from './ofac-excerpt.ts'

/** The sanctions list of a configuration, or the excerpt that ships with the gateway. */
export function createConfiguredSanctions(
  { sanctionsList }: Pick<Config, 'sanctionsList'>,
  log: Log,
): Sanctions {
  return sanctionsList === null ? createOfacExcerpt() : createSanctionsFile({ path: sanctionsList, log })
}
