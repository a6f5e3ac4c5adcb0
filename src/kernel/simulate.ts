/**
 * Simulates the decision on a spend with the real functions, in a transaction that is rolled back: nothing is held,
 * counted or written.
 */
import {
  budgetViolations,
  cooldownViolation,
  ownerViolations,
  repeatViolation,
} from '../../policies/budget.ts'
import type { Policy } from '../../policies/policy.ts'
import { buildSpendRequest } from '../books/spending/build-spend-request.ts'
import { readOwnerCap } from '../books/spending/owner-cap.ts'
import { reserveSpend, type SpendVerdict } from '../books/spending/reserve.ts'
import type { SpendRequest } from '../books/spending/spend-request.ts'
import type { AccessKey } from '../core/base/principal.ts'
import { Failure, type Violation } from '../core/failures/failure.ts'
import { formatValue } from '../core/money/shares.ts'
import { valueInUsd } from '../providers/rates/port.ts'
import type { Database } from '../storage/database.ts'
import { type Context, requireCaller } from './context.ts'
import { parseAncestors } from './gates/policy.ts'
import { resolveAncestors, resolvePolicy } from './resolve-payee.ts'
import type { SpendPlan } from './tool.ts'

/** @property available available amount if insufficient, as a decimal string. */
interface Outcome {
  readonly verdict: 'allow' | 'deny' | 'approval_required' | 'insufficient_funds'
  readonly violations: readonly Violation[]
  readonly available: string | null
}

/**
 * Simulated spends, one after the other.
 * @property usdMicros value of each spend in millionths of a USD.
 * @property allowed number of spends that are allowed before the first that is not.
 * @property firstDenied the first spend that is not allowed, counted from 1; null if all are.
 */
export interface Simulated extends Outcome {
  readonly usdMicros: bigint
  readonly allowed: number
  readonly firstDenied: (Outcome & { readonly number: number }) | null
}

/**
 * Simulates a series of equal spends. @param key key whose budgets apply; null simulates an unused key. @param policy the
 * key's policy or a draft. @throws Failure `rates_unavailable`, `conflict` when the key changed in the meantime.
 */
export async function simulateSpends(
  context: Context,
  {
    accountId,
    key,
    policy: stated,
    spending,
    count,
  }: { accountId: string; key: AccessKey | null; policy: Policy | null; spending: SpendPlan; count: number },
): Promise<Simulated> {
  const now = context.onCalendar(context.now)
  const value = await valueInUsd(context.rates, spending.money, context.now)
  const usdMicros = value.usdMicros + (spending.funding?.usdMicros ?? 0n)
  const cap = await readOwnerCap(context.database, { accountId, isLocked: false, now })
  const { chain } = spending
  const resolve = (judging: Policy | null) => resolvePolicy(context, { accountId, policy: judging, chain })
  const policy = await resolve(stated)
  const ancestors = key === null ? [] : await resolveAncestors(parseAncestors(key), resolve)
  const requestFor = (earlier: number) => {
    const draft = buildSpendRequest({
      operation: 'policy.simulate',
      spender: { accountId, key, policy, ancestors, quorums: requireCaller(context).account.quorums },
      spend: spending,
      value,
      idempotency: null,
      approvedBy: null,
      decisionId: context.newId('dec', now),
      now,
    })
    if (key !== null || policy === null) return draft
    const unused = listNewKeyViolations({ policy, spending, usdMicros, earlier, cap, now })
    const equal = Array.from({ length: earlier }, () => now)
    const repeated = draft.needsApproval ? undefined : repeatViolation(policy, equal, now)
    return { ...draft, violations: [...draft.violations, ...unused, ...[repeated ?? []].flat()] }
  }
  const decided = await decideAndRollBack(context.database, { requestFor, count })
  const outcomes = decided.map(toOutcome)
  const at = outcomes.findIndex(({ verdict }) => verdict !== 'allow')
  const [first] = outcomes
  const denied = outcomes[at]
  if (first === undefined) throw new Error('the simulation returned no decision')
  return {
    ...first,
    usdMicros,
    allowed: at === -1 ? outcomes.length : at,
    firstDenied: denied === undefined ? null : { ...denied, number: at + 1 },
  }
}

/** Counter violations of an unused key: its own budget, the owner's cap and unknown payees. @param earlier spends before it. */
function listNewKeyViolations({
  policy,
  spending: { counterparty },
  usdMicros,
  earlier,
  cap: { day, week, month },
  now,
}: {
  policy: Policy
  spending: SpendPlan
  usdMicros: bigint
  earlier: number
  cap: Awaited<ReturnType<typeof readOwnerCap>>
  now: Date
}): Violation[] {
  const spent = usdMicros * BigInt(earlier)
  const own = { usedMicros: spent, count: earlier }
  const caps = { day: day.maxMicros, week: week.maxMicros, month: month.maxMicros }
  const used = { day: day.usedMicros + spent, week: week.usedMicros + spent, month: month.usedMicros + spent }
  return [
    ...budgetViolations(policy, usdMicros, { day: own, week: own, month: own, life: own }, now),
    ...ownerViolations(caps, usdMicros, used, now),
    cooldownViolation(policy, counterparty, null, now),
  ].filter((violation) => violation !== undefined)
}

function toOutcome(decided: SpendVerdict): Outcome {
  const nothing = { violations: [], available: null }
  switch (decided.verdict) {
    case 'allow':
    case 'approval_required':
      return { ...nothing, verdict: decided.verdict }
    case 'deny':
      return { ...nothing, verdict: 'deny', violations: decided.violations }
    case 'insufficient_funds':
      return { ...nothing, verdict: 'insufficient_funds', available: formatValue(decided.available) }
    default:
      throw new Failure('conflict', 'The key or its policy changed during the simulation.', {
        hint: 'Send the request again.',
      })
  }
}

/** Decides spends up to the first that is not allowed, in a transaction that always rolls back. */
async function decideAndRollBack(
  database: Database,
  { requestFor, count }: { requestFor: (earlier: number) => SpendRequest; count: number },
): Promise<readonly SpendVerdict[]> {
  const rollBack = new Error('rolled back')
  const decided: SpendVerdict[] = []
  try {
    await database.transaction(async (connection) => {
      while (decided.length < count && decided.every(({ verdict }) => verdict === 'allow'))
        decided.push(await reserveSpend(connection, requestFor(decided.length)))
      throw rollBack
    })
  } catch (error) {
    if (error !== rollBack) throw error
  }
  return decided
}
