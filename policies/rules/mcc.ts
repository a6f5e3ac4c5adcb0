import type { Violation } from '../decision.ts'
import type { Policy } from '../policy.ts'
import type { SpendFacts } from '../spend.ts'
import { listed } from './lists.ts'

/** Card purchases at merchants of an allowed category (ISO 18245), and of none that is denied. */
export function mcc({ mcc: lists }: Policy, spend: SpendFacts): Violation | undefined {
  return spend.category === 'card' ? listed('mcc', lists ?? {}, spend.mcc) : undefined
}
