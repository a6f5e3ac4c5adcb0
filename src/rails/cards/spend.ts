/** Builds the spend request of a purchase. */

import type { Policy } from '../../../policies/policy.ts'
import {
  buildSpendRequest,
  judge,
  type PlannedSpend,
  policyFacts,
} from '../../books/spending/build-spend-request.ts'
import { BANK } from '../../books/spending/sources.ts'
import type { SpendRequest } from '../../books/spending/spend-request.ts'
import type { NewId } from '../../core/base/ids.ts'
import type { Json } from '../../core/base/json.ts'
import type { AccessKey } from '../../core/base/principal.ts'
import type { Violation } from '../../core/failures/failure.ts'
import type { CardAuthorization } from '../../providers/card-processor/port.ts'
import type { Funding } from './fundings.ts'
import type { CardWithPolicies } from './store.ts'

/** Dependencies of a card spend. @property parsePolicy parses a key's policy. */
export interface CardSpendDependencies {
  readonly parsePolicy: (key: Pick<AccessKey, 'id' | 'policy' | 'policyVersion'>) => Policy | null
  readonly newId: NewId
  /** Time of the calendar that budgets follow. */
  readonly onCalendar: (at: Date) => Date
}

/** Request to reserve a purchase, whose facts are named. */
export type CardSpend = Omit<SpendRequest, 'facts'> & { readonly facts: Readonly<Record<string, Json>> }

/** Rules about the merchant, by the fact that they read. */
const merchantRules: Readonly<Record<string, 'counterparty' | 'mcc'>> = {
  counterparty: 'counterparty',
  mcc: 'mcc',
}

/** The rules about the merchant that a purchase violates: those that the reserve of a card could not judge. */
export function findMerchantViolations(violations: readonly Violation[]): readonly Violation[] {
  return violations.filter(({ rule }) => merchantRules[rule] !== undefined)
}

/**
 * How a card's amount is reserved before its merchant is known.
 * @property approvedBy approval under which the owner has the card issued. @property task label of what it is for.
 */
export interface CardReserve {
  readonly approvedBy: string | null
  readonly task: string | null
}

/**
 * Builds the spend request and selects the assets that the key's policy allows as funding. If it allows none, returns
 * all assets together with the violations. A reserve is not judged by rules about what is unknown of the merchant; its purchase is.
 */
export function buildCardSpend(
  { newId, parsePolicy, onCalendar }: CardSpendDependencies,
  card: CardWithPolicies,
  {
    request: { merchant },
    units,
    all,
    now: at,
    reserve = null,
  }: {
    request: CardAuthorization
    units: bigint
    all: readonly Funding[]
    now: Date
    reserve?: CardReserve | null
  },
): { fundings: readonly Funding[]; spend: CardSpend } {
  const now = onCalendar(at)
  const { key } = card
  const policy = key === null ? null : parsePolicy(key)
  const ancestors = key?.ancestors.map((one) => ({ ...one, policy: parsePolicy(one) })) ?? []
  const usdMicros = units * 10_000n
  const purchase = ({ asset, chain }: Pick<Funding, 'asset' | 'chain'>): PlannedSpend => ({
    category: 'card',
    money: { asset: 'USD', units },
    asset,
    chain,
    place: chain ?? BANK,
    counterparty: merchant.id === '' ? null : `merchant:${merchant.id}`,
    mcc: merchant.mcc,
    facts: { cardId: card.id, merchant: merchant.name },
  })
  const judgeable = (violations: readonly Violation[], planned: PlannedSpend) =>
    reserve === null
      ? violations
      : violations.filter(({ rule }) => {
          const fact = merchantRules[rule]
          return fact === undefined || (planned[fact] ?? null) !== null
        })
  const isAllowed = (funding: Funding) => {
    if (key === null) return true
    const planned = purchase(funding)
    const violations = judge({ id: key.id, policy, ancestors }, policyFacts(planned, usdMicros), now)
    return judgeable(violations, planned).length === 0
  }
  const allowed = all.filter(isAllowed)
  const [first = { asset: 'USD', chain: null } as const] = all
  const request = buildSpendRequest({
    operation: reserve === null ? 'cards.authorize' : 'cards.issue',
    // Its owner's own card is paid with at a counter, where nobody can wait for others.
    spender: { accountId: card.accountId, key, policy, ancestors, quorums: key === null ? [] : card.quorums },
    spend: purchase(first),
    value: { rate: '1', usdMicros },
    idempotency: null,
    approvedBy: reserve?.approvedBy ?? null,
    task: key?.task ?? reserve?.task ?? null,
    decisionId: newId('dec', now),
    now,
  })
  if (allowed.length === 0)
    return {
      fundings: all,
      spend: { ...request, violations: judgeable(request.violations, purchase(first)) },
    }
  return { fundings: allowed, spend: { ...request, violations: [] } }
}
