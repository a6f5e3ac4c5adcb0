import type { Violation } from '../decision.ts'
import type { Policy } from '../policy.ts'
import type { SpendFacts } from '../spend.ts'
import { checkLists } from './lists.ts'

/** Investments are limited to allowed symbols, in any letter case, excluding denied ones. */
export function symbol({ symbols }: Policy, spend: SpendFacts): Violation | undefined {
  if (spend.category !== 'invest') return undefined
  return checkLists('symbol', symbols ?? {}, spend.symbol?.trim().toUpperCase() ?? null)
}
