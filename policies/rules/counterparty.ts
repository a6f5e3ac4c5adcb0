import { type Violation, violationOf } from '../decision.ts'
import type { Policy } from '../policy.ts'
import type { SpendFacts } from '../spend.ts'

/**
 * Nobody on the deny list is paid, and with an allow list only those on it. Deny beats allow. A payee that is not known
 * violates either list, because it may be on the one and may not be on the other.
 */
export function counterparty({ counterparties }: Policy, spend: SpendFacts): Violation | undefined {
  const { allow, deny = [] } = counterparties ?? {}
  const payee = spend.counterparty?.toLowerCase()
  const among = (list: readonly string[]) => list.some((address) => address.toLowerCase() === payee)
  const denied = payee === undefined ? deny.length > 0 : among(deny)
  if (!denied && (allow === undefined || among(allow))) return undefined
  const limit = payee !== undefined && among(deny) ? `not ${payee}` : (allow?.join(',') ?? null)
  return violationOf('counterparty', { limit, requested: spend.counterparty })
}
