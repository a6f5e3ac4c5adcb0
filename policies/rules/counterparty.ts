import type { Violation } from '../decision.ts'
import type { Policy } from '../policy.ts'
import type { SpendFacts } from '../spend.ts'
import { checkLists } from './lists.ts'

/** Payees on the deny list are never paid; with an allow list, only payees on it are paid. */
export function counterparty({ counterparties }: Policy, spend: SpendFacts): Violation | undefined {
  return checkLists('counterparty', counterparties ?? {}, spend.counterparty?.toLowerCase() ?? null)
}
