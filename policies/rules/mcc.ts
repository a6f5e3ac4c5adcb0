import { type Violation, violationOf } from '../decision.ts'
import type { Policy } from '../policy.ts'
import type { SpendFacts } from '../spend.ts'

/**
 * Card purchases at merchants of an allowed category (ISO 18245), and of none that is denied. Deny beats allow. A merchant
 * without a known category violates either list.
 */
export function mcc({ mcc: lists }: Policy, spend: SpendFacts): Violation | undefined {
  if (spend.category !== 'card' || lists === undefined) return undefined
  const { allow, deny = [] } = lists
  const denied = spend.mcc === null ? deny.length > 0 : deny.includes(spend.mcc)
  if (!denied && (allow === undefined || (spend.mcc !== null && allow.includes(spend.mcc)))) return undefined
  const limit = spend.mcc !== null && denied ? `not ${spend.mcc}` : (allow?.join(',') ?? null)
  return violationOf('mcc', { limit, requested: spend.mcc })
}
