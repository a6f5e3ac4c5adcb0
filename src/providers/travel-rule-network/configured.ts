/** The Travel Rule network of a configuration: without one the sandbox has its own, and production tells nobody. The data is on record all the same. */
import type { Clock } from '../../base/clock.ts'
import type { Config } from '../../config/read-config.ts'
import type { TravelRuleNetwork } from '../travel-rule-network.ts'
import { createHttpTravelRule } from './http.ts'
import { createSandboxTravelRule } from './sandbox.ts'

/** The network; null: nobody is told. */
export function createConfiguredTravelRule(
  { travelRule, mode }: Pick<Config, 'travelRule' | 'mode'>,
  clock: Clock,
): TravelRuleNetwork | null {
  if (travelRule !== null) return createHttpTravelRule(travelRule)
  return mode === 'sandbox' ? createSandboxTravelRule(clock) : null
}
