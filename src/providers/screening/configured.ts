import type { Log } from '../../core/base/log.ts'
import type { Config } from '../../core/config/read-config.ts'
import type { Sanctions } from '../sanctions/port.ts'
import { createChainalysisScreening } from './chainalysis.ts'
import { joinScreening } from './joined.ts'
import { createListScreening } from './listed.ts'
import { noScreening } from './none.ts'
import type { AddressScreening } from './port.ts'
import { createSandboxScreening } from './sandbox.ts'

/** Policy rules that screening applies, supplied by the caller. */
export interface ScreeningRules {
  readonly listed: Parameters<typeof createListScreening>[1]
  readonly sandboxSuffix: Parameters<typeof createSandboxScreening>[0]
  readonly worst: Parameters<typeof joinScreening>[1]
}

/** Address screening: always the sanctions list; production needs a provider beside it, the sandbox has test addresses. */
export function createConfiguredScreening(
  { screening, mode }: Pick<Config, 'screening' | 'mode'>,
  {
    sanctions,
    rules,
    log,
  }: { readonly sanctions: Sanctions; readonly rules: ScreeningRules; readonly log: Log },
): AddressScreening {
  const listed = createListScreening(sanctions, rules.listed)
  const suffixes = mode === 'sandbox' ? [createSandboxScreening(rules.sandboxSuffix)] : []
  const missing = mode === 'sandbox' ? [] : [noScreening]
  const provider = screening === null ? missing : [createChainalysisScreening({ ...screening, log })]
  return joinScreening([listed, ...suffixes, ...provider], rules.worst)
}
