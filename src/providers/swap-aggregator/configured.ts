/**
 * Selects the aggregators, each behind a circuit breaker; without configuration the sandbox uses its own and
 * production none.
 */
import type { Clock } from '../../core/base/clock.ts'
import type { Log } from '../../core/base/log.ts'
import type { Config } from '../../core/config/read-config.ts'
import type { Attester } from '../attester/port.ts'
import { createAcross } from './across.ts'
import { createCctp } from './cctp.ts'
import { guardAggregator } from './guarded.ts'
import { createLifi } from './lifi.ts'
import type { SwapAggregator } from './port.ts'
import { createRelay } from './relay.ts'
import { createSandboxAggregators } from './sandbox.ts'
import { createLyingRoutes } from './sandbox-pool.ts'
import { createZeroEx } from './zeroex.ts'

const create = { lifi: createLifi, relay: createRelay, '0x': createZeroEx, across: createAcross }

export function createConfiguredAggregators(
  { swapAggregators, mode }: Pick<Config, 'swapAggregators' | 'mode'>,
  { attester, ...parts }: { readonly clock: Clock; readonly log: Log; readonly attester: Attester | null },
): readonly SwapAggregator[] {
  const named = swapAggregators?.map(({ name, ...reached }) => create[name](reached))
  const all = named ?? (mode === 'sandbox' ? createSandboxAggregators() : [])
  const bridges = attester === null ? [] : createCctp(attester)
  return [...bridges, ...all].map((aggregator) => guardAggregator(aggregator, parts))
}

/** Routes that a quote takes only by their name. */
export function createConfiguredNamedRoutes({
  swapAggregators,
  mode,
}: Pick<Config, 'swapAggregators' | 'mode'>): readonly SwapAggregator[] {
  return mode === 'sandbox' && swapAggregators === null ? createLyingRoutes() : []
}
