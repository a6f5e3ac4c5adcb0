/**
 * The spend gate: evaluates the policy's static rules, then idempotency, counters, hold and decision in one round
 * trip. No money moves before or without it.
 */

import { screeningBehind } from '../../../policies/aml/screening.ts'
import { buildViolation } from '../../../policies/decision.ts'
import type { Policy } from '../../../policies/policy.ts'
import { findAskedApproval, findResumeApproval } from '../../books/approvals/approvals.ts'
import { requireOthers } from '../../books/approvals/quorum.ts'
import { buildSpendRequest, judge, policyFacts } from '../../books/spending/build-spend-request.ts'
import type { SpendVerdict } from '../../books/spending/reserve.ts'
import type { SpendRequest } from '../../books/spending/spend-request.ts'
import type { Json } from '../../core/base/json.ts'
import type { AccountPrincipal } from '../../core/base/principal.ts'
import { Failure, type FailureCode, type Violation } from '../../core/failures/failure.ts'
import { idempotencyKeyReused } from '../../core/failures/idempotency-failures.ts'
import { toDecimal } from '../../core/money/money.ts'
import { valueInUsd } from '../../providers/rates/port.ts'
import { type Context, requireCaller } from '../context.ts'
import { hashSpendCall, idempotencyOwner, withoutProof } from '../fingerprint.ts'
import { resolveAncestors, resolvePolicy } from '../resolve-payee.ts'
import type { Call, SpendPlan, Tool } from '../tool.ts'
import { approvalUrl, awaitApproval, buildOwnerRejection } from './approval.ts'
import { insufficientFunds } from './funds.ts'
import { requireKyc } from './kyc.ts'
import { parseAncestors, parsePolicy } from './policy.ts'
import { requireSigned } from './proof.ts'
import { takeSponsorship } from './rate.ts'

/** Result of the gate: the money is held, or an earlier call with the same idempotency key was allowed. */
export type SpendGate =
  | {
      readonly kind: 'reserved'
      readonly decisionId: string
      readonly spending: SpendPlan
      readonly written: Json | null
    }
  // `outage`: what kept this call from learning its decision.
  | { readonly kind: 'repeated'; readonly decisionId: string; readonly outage?: Failure }
  | { readonly kind: 'costless'; readonly answer: Record<string, unknown> }

/** How often a spend is planned whose money is taken by others before it is held. */
const MAX_PLANS = 3

/**
 * Decides on a spend and holds its money. @param mustBeSigned a person's spend that one of their signers must have signed. @throws Failure `policy_denied`, `approval_required`, `insufficient_funds`,
 * `idempotency_key_reused`, `conflict`, and failures of the tool's `spend`.
 */
export async function reserve(
  tool: Pick<Tool, 'name' | 'proof'>,
  call: Call,
  context: Context,
  { mustBeSigned, plans = 1 }: { mustBeSigned: boolean; plans?: number },
): Promise<SpendGate> {
  if (call.spend === null) throw new Error(`${tool.name} has no spend plan`)
  const caller = requireCaller(context)
  const foreseen = foreseeDenial(call, context)
  const spending = foreseen?.spending ?? (await call.spend(context))
  if ('repeats' in spending) return { kind: 'repeated', decisionId: spending.repeats }
  if ('costless' in spending) return { kind: 'costless', answer: { ...spending.costless } }
  if (mustBeSigned) requireSigned(spending)
  const idempotency =
    context.idempotencyKey === null
      ? null
      : {
          principal: idempotencyOwner(caller),
          key: context.idempotencyKey,
          fingerprint: hashSpendCall(context, tool.name, withoutProof(tool, context, call.input)),
        }
  const request = await buildRequest(tool.name, { spending, idempotency, context })
  const decided = await context.reserve(foreseen === null ? request : { ...request, ...foreseen.judged })
  // Another spend has taken the money meanwhile: it may be elsewhere.
  if (decided.verdict === 'stale_policy' && spending.funding !== undefined && plans < MAX_PLANS)
    return reserve(tool, call, context, { mustBeSigned, plans: plans + 1 })
  if (decided.verdict === 'deny' && caller.kind === 'key' && context.approvedBy === undefined)
    await requireUnasked(context, { tool, call, keyId: caller.key.id, decided, spending })
  if (decided.verdict === 'deny' && caller.kind === 'key')
    await refuseStopped(context, caller.key.id, decided)
  if (decided.verdict !== 'approval_required') return toGate(decided, { spending, context })
  if (caller.kind === 'session')
    throw await awaitOthers(context, {
      ...{ tool, call, caller, decided, what: describeSpend(spending) },
      usdMicros: request.usdMicros,
    })
  throw await awaitApproval(context, {
    operation: tool.name,
    call,
    key: caller.key,
    accountId: caller.account.id,
    decisionId: decided.decisionId,
    isReplayed: decided.replayed,
    ttlSeconds: parsePolicy(caller.key)?.approval?.ttlSec,
    what: foreseen === null ? describeSpend(spending) : 'This spend',
  })
}

/** A person's own payment asks the others, and is made again by the person once they have agreed. */
async function awaitOthers(
  context: Context,
  {
    tool,
    call,
    caller: { account, person },
    decided,
    what,
    usdMicros,
  }: {
    tool: Pick<Tool, 'name' | 'proof'>
    call: Call
    caller: Extract<AccountPrincipal, { kind: 'session' }>
    decided: Extract<SpendVerdict, { verdict: 'approval_required' }>
    what: string
    usdMicros: bigint | null
  },
): Promise<Failure> {
  const { decisionId } = decided
  if (context.scheduledFor !== undefined)
    return new Failure(
      'approval_required',
      `${what} requires the agreement of other people of the account.`,
      {
        decisionId,
        reason: 'quorum',
        isFinal: true,
        hint: 'A schedule asks nobody above the amounts in GET /api/agents/policy: make the payment yourself.',
      },
    )
  const steps = account.quorums ?? []
  await requireOthers(context.database, { accountId: account.id, personId: person.id, steps, usdMicros })
  const members = {
    operation: tool.name,
    call: {
      input: withoutProof(tool, context, call.input),
      raw: withoutProof(tool, context, call.raw),
      isWhole: false,
    },
    key: null,
    askerId: person.id,
    accountId: account.id,
    decisionId,
    isReplayed: decided.replayed,
    ttlSeconds: undefined,
    what,
  }
  return awaitApproval(context, members)
}

function describeSpend({ money }: Pick<SpendPlan, 'money'>): string {
  return `A spend of ${toDecimal(money)} ${money.asset}`
}

/**
 * Answers a denied call whose owner was asked about it already. @throws Failure `approval_rejected` after a no; `policy_denied`
 * with the approval while the owner decides.
 */
async function requireUnasked(
  context: Context,
  {
    tool,
    call,
    keyId,
    decided,
    spending,
  }: {
    tool: Pick<Tool, 'name'>
    call: Call
    keyId: string
    decided: Extract<SpendVerdict, { verdict: 'deny' }>
    spending: SpendPlan
  },
): Promise<void> {
  if (decided.violations.some(({ rule }) => NEVER_OVERRULED.has(rule))) return
  const { database, idempotencyKey } = context
  const at = context.onCalendar(context.now)
  const fingerprint = hashSpendCall(context, tool.name, call.input)
  const asked = await findAskedApproval(database, { keyId, fingerprint, idempotencyKey, at })
  if (asked?.status === 'rejected') throw buildOwnerRejection(asked, describeSpend(spending))
  if (asked?.status !== 'pending') return
  const { code, message, members } = buildDenial(decided)
  throw new Failure(code, message, {
    ...members,
    approvalId: asked.id,
    approvalUrl: approvalUrl(context.settings, asked.id),
    hint: `The owner was asked for this call: poll GET /api/approvals/${asked.id}. Once approved it runs by itself.`,
  })
}

/**
 * Answers a call of a key that is paused for its repeats with the request to resume it. @throws Failure `policy_denied` with that
 * approval while the owner decides.
 */
async function refuseStopped(
  { database, settings, now, onCalendar }: Context,
  keyId: string,
  decided: Extract<SpendVerdict, { verdict: 'deny' }>,
): Promise<void> {
  if (!decided.violations.some(({ rule }) => rule === 'repeat_limit' || rule === 'paused')) return
  const asked = await findResumeApproval(database, { keyId, at: onCalendar(now) })
  if (asked === undefined) return
  const { code, message, members } = buildDenial(decided)
  throw new Failure(code, message, {
    ...members,
    approvalId: asked.id,
    approvalUrl: approvalUrl(settings, asked.id),
    hint: `The key is paused for making the same spend again and again, and its owner was asked whether it may go on: check whether it loops, and poll GET /api/approvals/${asked.id}. Once that is approved, call again with a new idempotency key if the spend is still meant.`,
  })
}

/** A denial that is certain before third parties are asked. @property judged replaces what depends on their answer. */
interface ForeseenDenial {
  readonly spending: SpendPlan
  readonly judged: Pick<SpendRequest, 'violations' | 'cooldownSeconds' | 'needsApproval'>
}

/**
 * Judges by the policy what is certain of a key's spend before third parties are asked, so that a key that may not spend causes no
 * request. A call that its owner approved is judged with their answer.
 * @returns null where the answer decides.
 */
function foreseeDenial(call: Call, context: Context): ForeseenDenial | null {
  const caller = requireCaller(context)
  if (call.foresee === null || caller.kind !== 'key' || context.approvedBy !== undefined) return null
  const spending = call.foresee(context)
  const policy = parsePolicy(caller.key)
  const facts = { ...policyFacts(spending, 0n), seller: spending.seller ?? null }
  const broken = judge(
    { id: caller.key.id, policy, ancestors: parseAncestors(caller.key) },
    facts,
    context.onCalendar(context.now),
  )
  const violations = [
    // The payee is not known yet.
    ...broken.filter(({ rule }) => rule !== 'counterparty'),
    ...(caller.key.status === 'active' ? [] : [buildViolation('paused', {})]),
  ]
  if (violations.length === 0) return null
  return { spending, judged: { violations, cooldownSeconds: null, needsApproval: false } }
}

/**
 * Records the denial of an intent that AML does not clear. @throws Failure `aml_blocked` always, or why no decision
 * was possible.
 */
export async function denyUnscreened(
  operation: string,
  spending: SpendPlan,
  context: Context,
): Promise<never> {
  const decided = await decide(operation, { spending, idempotency: null, context })
  if (decided.verdict !== 'approval_required') await toGate(decided, { spending, context })
  throw new Error(`${operation}: a spend that AML does not clear was not denied`)
}

/**
 * Decides whether the policy denies a call that asks its owner for an exception. Nothing is held or counted, and the
 * decision is recorded. @returns the violations, which are empty if only the owner's approval is missing.
 * @throws Failure for what no approval overrules: `aml_blocked`, `kyc_required`, `insufficient_funds`, a paused key.
 */
export async function judgeException(
  tool: Pick<Tool, 'name'>,
  call: Call,
  context: Context,
): Promise<{ readonly decisionId: string; readonly violations: readonly Violation[] }> {
  if (call.spend === null) throw new Error(`${tool.name} has no spend plan`)
  const spending = await call.spend(context)
  if ('repeats' in spending)
    throw new Failure('conflict', 'This call was already made.', {
      reason: 'already_made',
      hint: 'Repeat the call itself: it returns the first answer.',
    })
  if ('costless' in spending)
    throw new Failure('conflict', 'This call costs nothing.', {
      reason: 'costless',
      hint: 'Make the call itself.',
    })
  const request = await buildRequest(tool.name, {
    spending: withoutSponsor(spending),
    idempotency: null,
    context,
  })
  const decided = await context.reserve({ ...request, needsApproval: true })
  if (decided.verdict === 'approval_required') return { decisionId: decided.decisionId, violations: [] }
  if (decided.verdict === 'deny' && !decided.violations.some(({ rule }) => NEVER_OVERRULED.has(rule)))
    return { decisionId: decided.decisionId, violations: decided.violations }
  await toGate(decided, { spending, context })
  throw new Error(`${tool.name}: a request for an exception held money`)
}

/** Rules that no approval overrules, as the database function `approval_overrules` has them. */
const NEVER_OVERRULED: ReadonlySet<string> = new Set(['aml_screening', 'paused'])

/** A request for an exception sends nothing, so it uses none of the day's sponsored operations. */
function withoutSponsor({ isSponsored: _isSponsored, ...spending }: SpendPlan): SpendPlan {
  return spending
}

/** Decides on a spend. Spends that AML does not clear are recorded before any other check. */
async function decide(operation: string, planned: Planned): Promise<SpendVerdict> {
  return planned.context.reserve(await buildRequest(operation, planned))
}

interface Planned {
  readonly spending: SpendPlan
  readonly idempotency: SpendRequest['idempotency']
  readonly context: Context
}

async function buildRequest(
  operation: string,
  { spending, idempotency, context }: Planned,
): Promise<SpendRequest> {
  const caller = requireCaller(context)
  const now = context.onCalendar(context.now)
  const value = await valueInUsd(context.rates, spending.money, context.now)
  if (isCleared(spending)) {
    requireKyc(context.settings, caller.account, value.usdMicros)
    if (spending.isSponsored === true) await takeSponsorship(context, caller, context.now)
  }
  const key = caller.kind === 'key' ? caller.key : null
  const { id: accountId, quorums } = caller.account
  const resolve = (policy: Policy | null) =>
    resolvePolicy(context, { accountId, policy, chain: spending.chain })
  return buildSpendRequest({
    operation,
    spender: {
      accountId,
      key,
      policy: key === null ? null : await resolve(parsePolicy(key)),
      ancestors: key === null ? [] : await resolveAncestors(parseAncestors(key), resolve),
      quorums,
    },
    spend: spending,
    value,
    idempotency,
    approvedBy: context.approvedBy ?? null,
    scheduledFor: context.scheduledFor ?? null,
    task: key?.delegation?.task ?? context.task ?? null,
    contactId: context.payee?.contactId ?? null,
    decisionId: context.newId('dec', now),
    nonce: caller.kind === 'key' ? caller.nonce : undefined,
    now,
  })
}

function isCleared({ aml }: Pick<SpendPlan, 'aml'>): boolean {
  return aml === undefined || aml.screening.result === 'clear'
}

async function toGate(
  decided: Exclude<SpendVerdict, { verdict: 'approval_required' }>,
  { spending, context }: Pick<Planned, 'spending' | 'context'>,
): Promise<SpendGate> {
  switch (decided.verdict) {
    case 'allow':
      return {
        kind: 'reserved',
        decisionId: decided.decisionId,
        spending,
        written: decided.written ?? null,
      }
    case 'repeated':
      return { kind: 'repeated', decisionId: decided.decisionId }
    case 'deny': {
      const screening = screeningBehind(decided.violations)
      if (screening === undefined || spending.aml === undefined) throw buildDenial(decided)
      const { decisionId, violations } = decided
      throw spending.aml.refusal(screening, { decisionId, violations })
    }
    case 'insufficient_funds':
      throw await insufficientFunds(context, spending, decided)
    case 'fingerprint_mismatch':
      throw idempotencyKeyReused()
    case 'account_locked':
      throw new Failure(
        'account_locked',
        'The account was locked during this request, which had no effect.',
        {
          hint: 'Unlock it through POST /api/auth/recovery/start.',
        },
      )
    case 'stale_policy':
      throw new Failure(
        'conflict',
        'The key or its policy changed during this request, which had no effect.',
        {
          hint: 'Send the request again.',
        },
      )
  }
}

/** Denials that have a code of their own. */
const codes: Readonly<Record<string, FailureCode>> = {
  payee_changed: 'payee_changed',
  price_changed: 'price_changed',
}

const PAUSED_HINT =
  'The key is paused, and only its owner can resume it: tell the owner. Until then it can only read.'
const DENIED_HINT =
  'Tell the owner which rules deny it, or ask for exactly this call once: POST /api/approvals {"operation":…,"input":…,"reason":…}. Never split it, and never change its amount or payee to stay within a limit.'

/** The failure of a denied spend, with every violated rule. */
export function buildDenial({
  decisionId,
  violations,
  replayed,
}: Extract<SpendVerdict, { verdict: 'deny' }>): Failure {
  const rules = violations.map(({ rule, limit, requested, remaining }) =>
    [
      rule,
      ...(requested === null ? [] : [`requested ${requested}`]),
      ...(limit === null ? [] : [`limit ${limit}`]),
      ...(remaining === null ? [] : [`remaining ${remaining}`]),
    ].join(', '),
  )
  const [first, ...others] = new Set(violations.map(({ rule }) => codes[rule] ?? 'policy_denied'))
  const code = others.length > 0 ? 'policy_denied' : (first ?? 'policy_denied')
  return new Failure(code, `The spend policy denies this: ${rules.join('; ')}.`, {
    violations,
    decisionId,
    isReplayed: replayed,
    hint: violations.some(({ rule }) => rule === 'paused') ? PAUSED_HINT : DENIED_HINT,
  })
}
