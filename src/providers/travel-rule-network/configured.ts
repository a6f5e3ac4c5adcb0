/**
 * Selects the Travel Rule network: without configuration the sandbox uses its own, and production notifies no
 * institution. The data is recorded in any case.
 */
import type { Clock } from '../../core/base/clock.ts'
import type { Config } from '../../core/config/read-config.ts'
import { createHttpTravelRule } from './http.ts'
import type { TravelRuleNetwork } from './port.ts'
import { createSandboxTravelRule } from './sandbox.ts'

/** Returns the network; null: institutions are not notified. */
export function createConfiguredTravelRule(
  { travelRule, mode }: Pick<Config, 'travelRule' | 'mode'>,
  clock: Clock,
): TravelRuleNetwork | null {
  if (travelRule !== null) return createHttpTravelRule(travelRule)
  return mode === 'sandbox' ? createSandboxTravelRule(clock) : null
}
