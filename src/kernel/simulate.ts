/**
 * Simulates the decision on a spend with the real functions, in a transaction that is rolled back: nothing is held,
 * counted or written.
 */
import { cooldownViolation, dailyViolations, ownerViolation } from '../../policies/budget.ts'
import type { Policy } from '../../policies/policy.ts'
import type { AccessKey } from '../base/principal.ts'
import { Failure, type Violation } from '../failures/failure.ts'
import { decimalOfValue } from '../money/shares.ts'
import { type UsdValue, usdMicrosAt } from '../money/usd-value.ts'
import { buildSpendRequest } from '../spending/build-spend-request.ts'
import { readOwnerCap } from '../spending/owner-cap.ts'
import { reserveSpend, type SpendVerdict } from '../spending/reserve.ts'
import type { SpendRequest } from '../spending/spend-request.ts'
import type { Database } from '../storage/database.ts'
import type { Context } from './context.ts'
import type { SpendPlan } from './tool.ts'

/** @property usdMicros value of the spend in millionths of a USD. */
export interface Simulated {
  readonly verdict: 'allow' | 'deny' | 'approval_required' | 'insufficient_funds'
  readonly violations: readonly Violation[]
  readonly usdMicros: bigint
  /** Available amount if insufficient, as a decimal string. */
  readonly available: string | null
}

/**
 * Simulates a spend. @param key key whose budgets apply; null simulates an unused key. @param policy the key's policy
 * or a draft. @throws Failure `rates_unavailable`, `conflict` when the key changed in the meantime.
 */
export async function simulateSpend(
  context: Context,
  {
    accountId,
    key,
    policy,
    spending,
  }: { accountId: string; key: AccessKey | null; policy: Policy | null; spending: SpendPlan },
): Promise<Simulated> {
  const value = usdMicrosAt(await context.rates.latest(context.now), spending.money)
  const draft = buildSpendRequest({
    operation: 'policy.simulate',
    spender: { accountId, key, policy },
    spend: spending,
    value,
    idempotency: null,
    approvedBy: null,
    decisionId: context.newId('dec', context.now),
    now: context.now,
  })
  const unused =
    key === null && policy !== null
      ? await violationsOfNewKey(context, { accountId, policy, spending, value })
      : []
  const request = { ...draft, violations: [...draft.violations, ...unused] }
  return { ...shown(await decideAndRollBack(context.database, request)), usdMicros: value.usdMicros }
}

/** Counter violations of an unused key: its own budget, the owner's cap and unknown payees. */
async function violationsOfNewKey(
  { database, now }: Context,
  {
    accountId,
    policy,
    spending,
    value: { usdMicros },
  }: { accountId: string; policy: Policy; spending: SpendPlan; value: UsdValue },
): Promise<Violation[]> {
  const { maxMicros, usedMicros } = await readOwnerCap(database, { accountId, isLocked: false, now })
  const { counterparty } = spending
  return [
    ...dailyViolations(policy, usdMicros, { usedMicros: 0n, count: 0 }, now),
    ownerViolation(maxMicros, usdMicros, usedMicros, now),
    cooldownViolation(policy, counterparty, null, now),
  ].filter((violation) => violation !== undefined)
}

function shown(decided: SpendVerdict): Omit<Simulated, 'usdMicros'> {
  const nothing = { violations: [], available: null }
  switch (decided.verdict) {
    case 'allow':
    case 'approval_required':
      return { ...nothing, verdict: decided.verdict }
    case 'deny':
      return { ...nothing, verdict: 'deny', violations: decided.violations }
    case 'insufficient_funds':
      return { ...nothing, verdict: 'insufficient_funds', available: decimalOfValue(decided.available) }
    default:
      throw new Failure('conflict', 'The key or its policy changed during the simulation.', {
        hint: 'Send the request again.',
      })
  }
}

/** Decides in a transaction that always rolls back. */
async function decideAndRollBack(database: Database, request: SpendRequest): Promise<SpendVerdict> {
  const rollBack = new Error('rolled back')
  let decided: SpendVerdict | undefined
  try {
    await database.transaction(async (connection) => {
      decided = await reserveSpend(connection, request)
      throw rollBack
    })
  } catch (error) {
    if (error !== rollBack) throw error
  }
  if (decided === undefined) throw new Error('the simulation returned no decision')
  return decided
}
