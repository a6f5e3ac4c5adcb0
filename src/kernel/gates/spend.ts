/**
 * The spend gate: the policy's static rules, then idempotency, counters, hold and decision in one round trip. Nothing has
 * moved before it, and nothing moves without it.
 */
import { needsApproval } from '../../../policies/approval.ts'
import { evaluate } from '../../../policies/evaluate.ts'
import type { Policy } from '../../../policies/policy.ts'
import { usdMicrosOf } from '../../../policies/usd.ts'
import { Failure, type Violation } from '../../failure.ts'
import { idempotencyKeyReused } from '../../idempotency-failures.ts'
import { toJson } from '../../json.ts'
import { decimalOf } from '../../money.ts'
import type { AccessKey } from '../../principal.ts'
import { decimalOfValue, nameOfValue } from '../../shares.ts'
import type { SpendRequest, SpendVerdict } from '../../spending/reserve.ts'
import { type UsdValue, usdMicrosAt } from '../../usd-value.ts'
import { type Context, callerOf } from '../context.ts'
import { fingerprintOf, idempotencyOwner } from '../fingerprint.ts'
import type { Call, Spending, Tool } from '../tool.ts'
import { awaitApproval } from './approval.ts'
import { requireKyc } from './kyc.ts'
import { policyOf } from './policy.ts'

/** What came of the gate: the money is held now, or an earlier call with the same idempotency key was allowed. */
export type SpendGate =
  | { readonly kind: 'reserved'; readonly decisionId: string; readonly spending: Spending }
  | { readonly kind: 'repeated'; readonly decisionId: string }

/**
 * Decides on a spend and holds its money.
 * @throws Failure `policy_denied`, `approval_required`, `insufficient_funds`, `idempotency_key_reused`, `conflict`, and what the
 * tool's own `spend` refuses with.
 */
export async function reserve(tool: Pick<Tool, 'name'>, call: Call, context: Context): Promise<SpendGate> {
  if (call.spend === null) throw new Error(`${tool.name} spends without saying what`)
  const caller = callerOf(context)
  const spending = await call.spend(context)
  if ('repeats' in spending) return { kind: 'repeated', decisionId: spending.repeats }
  const value = usdMicrosAt(await context.rates.latest(context.now), spending.money)
  requireKyc(context.settings, caller.account, value.usdMicros)
  const key = caller.kind === 'key' ? caller.key : null
  const request = spendRequest(tool.name, {
    spender: { accountId: caller.account.id, key, policy: key === null ? null : policyOf(key) },
    spending,
    value,
    idempotency:
      context.idempotencyKey === null
        ? null
        : {
            principal: idempotencyOwner(caller),
            key: context.idempotencyKey,
            fingerprint: fingerprintOf(tool.name, call.input),
          },
    context,
  })
  const decided = await context.reserve(request)
  if (decided.verdict !== 'approval_required') return gateOf(decided, spending)
  if (caller.kind !== 'key') throw new Error('only a key waits for an approval')
  throw await awaitApproval(context, {
    operation: tool.name,
    call,
    key: caller.key,
    accountId: caller.account.id,
    decisionId: decided.decisionId,
    isReplayed: decided.replayed,
    ttlSeconds: policyOf(caller.key)?.approval?.ttlSec,
    what: `A spend of ${decimalOf(spending.money)} ${spending.money.asset}`,
  })
}

/** Who spends, by which policy; a person spends without one. */
export interface Spender {
  readonly accountId: string
  readonly key: Pick<AccessKey, 'id' | 'policyVersion' | 'policyHash'> | null
  readonly policy: Policy | null
}

/** What is asked of the database's spend function. Nothing in it was decided but the policy's static rules. */
export function spendRequest(
  operation: string,
  {
    spender: { accountId, key, policy },
    spending,
    value,
    idempotency,
    context,
  }: {
    spender: Spender
    spending: Spending
    value: UsdValue
    idempotency: SpendRequest['idempotency']
    context: Pick<Context, 'newId' | 'now' | 'approvedBy'>
  },
): SpendRequest {
  const { category, money, chain, counterparty, place, mcc = null, symbol = null } = spending
  const facts = { category, asset: money.asset, usdMicros: value.usdMicros, chain, counterparty, mcc, symbol }
  return {
    decisionId: context.newId('dec', context.now),
    accountId,
    key: key === null ? null : { id: key.id, policyVersion: key.policyVersion, limits: limitsOf(policy) },
    policyHash: key?.policyHash ?? null,
    operation,
    facts: {
      category,
      amount: decimalOf(money),
      asset: money.asset,
      usdRate: value.rate,
      usdMicros: String(value.usdMicros),
      chain,
      counterparty,
      mcc,
      symbol,
      approvalId: context.approvedBy ?? null,
      found: toJson(spending.facts),
    },
    violations: policy !== null ? evaluate(policy, facts, context.now) : key === null ? [] : [noPolicy],
    money: spending.holding ?? money,
    usdMicros: value.usdMicros,
    counterparty,
    cooldownSeconds: policy?.counterparties?.newPayeeCooldownSec ?? null,
    needsApproval:
      policy !== null && context.approvedBy === undefined && needsApproval(policy, value.usdMicros),
    isApproved: context.approvedBy !== undefined,
    place,
    idempotency,
    at: context.now,
  }
}

/** A key without a policy may spend on nothing. */
const noPolicy: Violation = {
  rule: 'category',
  limit: '',
  used: null,
  requested: null,
  remaining: null,
  resetsAt: null,
}

function limitsOf(policy: Policy | null) {
  return {
    dailyMaxMicros: policy === null ? 0n : usdMicrosOf(policy.dailyBudget.max),
    dailyMaxCount: policy?.dailyBudget.maxCount ?? null,
  }
}

function gateOf(
  decided: Exclude<SpendVerdict, { verdict: 'approval_required' }>,
  spending: Spending,
): SpendGate {
  switch (decided.verdict) {
    case 'allow':
      return { kind: 'reserved', decisionId: decided.decisionId, spending }
    case 'repeated':
      return { kind: 'repeated', decisionId: decided.decisionId }
    case 'deny':
      throw denied(decided)
    case 'insufficient_funds':
      throw new Failure(
        'insufficient_funds',
        `The ${spending.holding === undefined ? 'wallet' : 'portfolio'} has ${decimalOfValue(decided.available)} ${nameOfValue(decided.available)} available; ${decimalOfValue(spending.holding ?? spending.money)} needed.`,
        {
          decisionId: decided.decisionId,
          isReplayed: decided.replayed,
          hint: spending.fundsHint ?? 'Ask for a smaller amount, or add funds and use a new idempotency key.',
        },
      )
    case 'fingerprint_mismatch':
      throw idempotencyKeyReused()
    case 'account_locked':
      throw new Failure(
        'account_locked',
        'The account was locked while this request was under way; nothing was done.',
        {
          hint: 'Unlock it through POST /api/auth/recovery/start.',
        },
      )
    case 'stale_policy':
      throw new Failure(
        'conflict',
        'The key or its policy changed while this request was under way; nothing was done.',
        {
          hint: 'Send the request again.',
        },
      )
  }
}

function denied({ decisionId, violations, replayed }: Extract<SpendVerdict, { verdict: 'deny' }>): Failure {
  const rules = violations.map(({ rule, limit, requested, remaining }) =>
    [
      rule,
      ...(requested === null ? [] : [`requested ${requested}`]),
      ...(limit === null ? [] : [`limit ${limit}`]),
      ...(remaining === null ? [] : [`remaining ${remaining}`]),
    ].join(', '),
  )
  return new Failure('policy_denied', `The spend policy denies this: ${rules.join('; ')}.`, {
    violations,
    decisionId,
    isReplayed: replayed,
    hint: 'Change what "violations" names, wait until "resetsAt", or ask the owner for a wider policy.',
  })
}
