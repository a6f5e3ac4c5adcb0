import { buildViolation, type Violation } from '../decision.ts'
import type { Policy } from '../policy.ts'
import type { SpendFacts } from '../spend.ts'

/** Only listed assets may be spent, if the policy lists any. */
export function asset({ assets }: Policy, spend: SpendFacts): Violation | undefined {
  if (assets === undefined || assets.some((allowed) => allowed === spend.asset)) return undefined
  return buildViolation('asset', { limit: assets.join(','), requested: spend.asset })
}
