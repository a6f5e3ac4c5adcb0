/** A purchase as the spend engine is asked for it. */

import { needsApproval } from '../../policies/approval.ts'
import { noPolicy } from '../../policies/decision.ts'
import { evaluate } from '../../policies/evaluate.ts'
import type { Policy } from '../../policies/policy.ts'
import { usdMicrosOf } from '../../policies/usd.ts'
import type { NewId } from '../base/ids.ts'
import type { Violation } from '../failures/failure.ts'
import { decimalOf } from '../money/money.ts'
import type { CardAuthorization } from '../providers/card-processor.ts'
import { BANK } from '../spending/sources.ts'
import type { SpendRequest } from '../spending/spend-request.ts'
import type { Funding } from './fundings.ts'
import type { CardWithPolicies } from './store.ts'

/** What a spend is made of. @property policyOf a key's policy, parsed. */
export interface CardSpendDependencies {
  readonly policyOf: (key: NonNullable<CardWithPolicies['key']>) => Policy | null
  readonly newId: NewId
}

/**
 * The spend that the engine is asked for, and the assets that the key's policy lets it be paid from: all of them, with what
 * forbids it, where there are none.
 */
export function spendOf(
  { newId, policyOf }: CardSpendDependencies,
  card: CardWithPolicies,
  {
    request: { merchant },
    units,
    all,
    now,
  }: { request: CardAuthorization; units: bigint; all: readonly Funding[]; now: Date },
): { fundings: readonly Funding[]; spend: SpendRequest } {
  const { key } = card
  const policy = key === null ? null : policyOf(key)
  const usdMicros = units * 10_000n
  const counterparty = merchant.id === '' ? null : `merchant:${merchant.id}`
  const violationsFrom = ({ asset, chain }: Pick<Funding, 'asset' | 'chain'>): readonly Violation[] => {
    if (key === null) return []
    if (policy === null) return [noPolicy]
    const facts = {
      category: 'card',
      asset,
      usdMicros,
      chain,
      counterparty,
      mcc: merchant.mcc,
      symbol: null,
    } as const
    return evaluate(policy, facts, now)
  }
  const allowed = all.filter((funding) => violationsFrom(funding).length === 0)
  const [first = { asset: 'USD', chain: null } as const] = all
  const violations = allowed.length > 0 ? [] : violationsFrom(first)
  const spend: SpendRequest = {
    decisionId: newId('dec', now),
    accountId: card.accountId,
    key:
      key === null
        ? null
        : {
            id: key.id,
            policyVersion: key.policyVersion,
            limits: {
              dailyMaxMicros: policy === null ? 0n : usdMicrosOf(policy.dailyBudget.max),
              dailyMaxCount: policy?.dailyBudget.maxCount ?? null,
            },
          },
    policyHash: key?.policyHash ?? null,
    operation: 'cards.authorize',
    facts: {
      category: 'card',
      amount: decimalOf({ asset: 'USD', units }),
      asset: first.asset,
      usdRate: '1',
      usdMicros: usdMicros.toString(),
      chain: first.chain,
      counterparty,
      mcc: merchant.mcc,
      symbol: null,
      approvalId: null,
      found: { cardId: card.id, merchant: merchant.name },
    },
    violations,
    money: { asset: 'USD', units },
    usdMicros,
    counterparty,
    cooldownSeconds: policy?.counterparties?.newPayeeCooldownSec ?? null,
    needsApproval: policy !== null && needsApproval(policy, usdMicros),
    isApproved: false,
    place: first.chain ?? BANK,
    idempotency: null,
    at: now,
  }
  return { fundings: allowed.length > 0 ? allowed : all, spend }
}
