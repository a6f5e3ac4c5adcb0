import type { Violation } from '../decision.ts'
import type { Policy } from '../policy.ts'
import type { SpendFacts } from '../spend.ts'
import { listed } from './lists.ts'

/** Nobody on the deny list is paid, and with an allow list only those on it. */
export function counterparty({ counterparties }: Policy, spend: SpendFacts): Violation | undefined {
  return listed('counterparty', counterparties ?? {}, spend.counterparty?.toLowerCase() ?? null)
}
