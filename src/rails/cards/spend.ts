/** Builds the spend request of a purchase. */

import { evaluate } from '../../../policies/evaluate.ts'
import type { Policy } from '../../../policies/policy.ts'
import {
  buildSpendRequest,
  type PlannedSpend,
  policyFacts,
} from '../../books/spending/build-spend-request.ts'
import { BANK } from '../../books/spending/sources.ts'
import type { SpendRequest } from '../../books/spending/spend-request.ts'
import type { NewId } from '../../core/base/ids.ts'
import type { Json } from '../../core/base/json.ts'
import type { CardAuthorization } from '../../providers/card-processor/port.ts'
import type { Funding } from './fundings.ts'
import type { CardWithPolicies } from './store.ts'

/** Dependencies of a card spend. @property parsePolicy parses a key's policy. */
export interface CardSpendDependencies {
  readonly parsePolicy: (key: NonNullable<CardWithPolicies['key']>) => Policy | null
  readonly newId: NewId
}

/** Request to reserve a purchase, whose facts are named. */
export type CardSpend = Omit<SpendRequest, 'facts'> & { readonly facts: Readonly<Record<string, Json>> }

/**
 * Builds the spend request and selects the assets that the key's policy allows as funding. If it allows none, returns
 * all assets together with the violations.
 */
export function buildCardSpend(
  { newId, parsePolicy }: CardSpendDependencies,
  card: CardWithPolicies,
  {
    request: { merchant },
    units,
    all,
    now,
  }: { request: CardAuthorization; units: bigint; all: readonly Funding[]; now: Date },
): { fundings: readonly Funding[]; spend: CardSpend } {
  const { key } = card
  const policy = key === null ? null : parsePolicy(key)
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
  const isAllowed = (funding: Funding) =>
    key === null ||
    (policy !== null && evaluate(policy, policyFacts(purchase(funding), usdMicros), now).length === 0)
  const allowed = all.filter(isAllowed)
  const [first = { asset: 'USD', chain: null } as const] = all
  const request = buildSpendRequest({
    operation: 'cards.authorize',
    spender: { accountId: card.accountId, key, policy },
    spend: purchase(first),
    value: { rate: '1', usdMicros },
    idempotency: null,
    approvedBy: null,
    decisionId: newId('dec', now),
    now,
  })
  if (allowed.length === 0) return { fundings: all, spend: request }
  return { fundings: allowed, spend: { ...request, violations: [] } }
}
