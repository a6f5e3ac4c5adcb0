/** Selects the attester: Circle’s where its URL is set, else the sandbox’s own, and none in production. */
import type { Clock } from '../../core/base/clock.ts'
import type { Config } from '../../core/config/read-config.ts'
import type { Database } from '../../storage/database.ts'
import type { Chains } from '../chain/chains.ts'
import { createIris } from './iris.ts'
import type { Attester } from './port.ts'
import { createSandboxAttester } from './sandbox.ts'

export function createConfiguredAttester(
  { cctpUrl, mode }: Pick<Config, 'cctpUrl' | 'mode'>,
  parts: { readonly chains: Chains; readonly database: Database; readonly clock: Clock },
): Attester | null {
  if (cctpUrl !== null) return createIris({ url: cctpUrl })
  return mode === 'sandbox' ? createSandboxAttester(parts) : null
}
