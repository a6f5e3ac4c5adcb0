/**
 * What would be decided on a spend: by the very functions that decide on real ones, in a transaction that is taken back, so
 * that nothing is held, counted or written.
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

/** A verdict that holds for nothing. @property usdMicros what the spend is worth, millionths of a USD. */
export interface Simulated {
  readonly verdict: 'allow' | 'deny' | 'approval_required' | 'insufficient_funds'
  readonly violations: readonly Violation[]
  readonly usdMicros: bigint
  /** What is available, where that is too little: a decimal string. */
  readonly available: string | null
}

/**
 * Decides on a spend without doing it.
 * @param key whose budgets it would count in; null: of a key that has used nothing yet. @param policy the key's own or a draft.
 * @throws Failure `rates_unavailable`, `conflict` where the key changed meanwhile.
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
  const asked = buildSpendRequest({
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
    key === null && policy !== null ? await ofNewKey(context, { accountId, policy, spending, value }) : []
  const request = { ...asked, violations: [...asked.violations, ...unused] }
  return { ...shown(await takenBack(context.database, request)), usdMicros: value.usdMicros }
}

/** What the counters would say of a key that has used nothing yet: its own, the owner's cap, and that it knows no payee. */
async function ofNewKey(
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
      throw new Failure('conflict', 'The key or its policy changed while this was simulated.', {
        hint: 'Send the request again.',
      })
  }
}

/** Decides in a transaction that never commits. */
async function takenBack(database: Database, request: SpendRequest): Promise<SpendVerdict> {
  const takeBack = new Error('taken back')
  let decided: SpendVerdict | undefined
  try {
    await database.transaction(async (connection) => {
      decided = await reserveSpend(connection, request)
      throw takeBack
    })
  } catch (error) {
    if (error !== takeBack) throw error
  }
  if (decided === undefined) throw new Error('nothing was decided')
  return decided
}
