import type { Violation } from '../decision.ts'
import type { Policy } from '../policy.ts'
import type { SpendFacts } from '../spend.ts'
import { checkLists } from './lists.ts'

/** Card purchases are limited to allowed merchant categories (ISO 18245), excluding denied ones. */
export function mcc({ mcc: lists }: Policy, spend: SpendFacts): Violation | undefined {
  return spend.category === 'card' ? checkLists('mcc', lists ?? {}, spend.mcc) : undefined
}
