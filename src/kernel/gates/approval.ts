/** Failures for calls that require approval. */
import { z } from 'zod'
import { writeJson } from '../../base/json.ts'
import { Failure, type FailureCode, type FailureMembers, failures } from '../../failures/failure.ts'
import { type Approval, requestApproval } from '../../spending/approvals.ts'
import type { Context } from '../context.ts'
import { fingerprintOf } from '../fingerprint.ts'
import type { Call } from '../tool.ts'

/** One day, for policies that were changed in the meantime. */
export const DEFAULT_TTL_SECONDS = 86_400

export interface PendingDecision {
  readonly operation: string
  readonly call: Pick<Call, 'input' | 'raw'>
  readonly key: { readonly id: string }
  readonly accountId: string
  readonly decisionId: string
  readonly isReplayed: boolean
  readonly ttlSeconds: number | undefined
  /** Description of the call. */
  readonly what: string
}

/** Requests the owner's approval, and returns its state: `approval_required`, or the failure of the approved call. */
export async function awaitApproval(context: Context, waiting: PendingDecision): Promise<Failure> {
  const { operation, call, key, accountId, decisionId, ttlSeconds = DEFAULT_TTL_SECONDS } = waiting
  const approval = await requestApproval(context, {
    accountId,
    keyId: key.id,
    decisionId,
    operation,
    input: writeJson(call.raw),
    fingerprint: fingerprintOf(operation, call.input),
    idempotencyKey: context.idempotencyKey,
    reason: null,
    violations: [],
    ttlSeconds,
    at: context.now,
  })
  if (approval.problem !== null) return failureOf(approval.problem)
  const { detail, hint, reason } = statusTexts[approval.status](waiting.what)
  return new Failure('approval_required', detail, {
    decisionId,
    approvalId: approval.id,
    approvalUrl: approvalUrl(context.settings, approval.id),
    isReplayed: waiting.isReplayed,
    reason,
    hint,
  })
}

/** URL of the page where the owner decides. */
export function approvalUrl(
  { origin, webOrigins: [site = origin] }: Pick<Context['settings'], 'origin' | 'webOrigins'>,
  id: string,
): string {
  return `${site}/approvals/${id}`
}

interface StatusText {
  readonly detail: string
  readonly hint: string
  readonly reason?: string
}

const statusTexts: Readonly<Record<Approval['status'], (what: string) => StatusText>> = {
  pending: (what) => ({
    detail: `${what} requires the owner's approval. No money is held yet.`,
    hint: 'Ask the owner to approve it at approvalUrl. Then poll GET /api/approvals/{approvalId} (over MCP: the tool approvals_get), or repeat the call with the same idempotency key.',
  }),
  approved: (what) => ({
    detail: `${what} was approved and is pending.`,
    hint: 'Repeat the call with the same idempotency key in a second.',
    reason: 'running',
  }),
  rejected: (what) => ({
    detail: `The owner rejected ${what}.`,
    hint: 'Do not repeat the call unless the owner asks for it; a new call requires a new idempotency key.',
    reason: 'rejected',
  }),
  withdrawn: (what) => ({
    detail: `The request for approval of ${what} was withdrawn.`,
    hint: 'Do not repeat the call unless the owner asks for it; a new call requires a new idempotency key.',
    reason: 'withdrawn',
  }),
  expired: (what) => ({
    detail: `The owner did not approve ${what} in time.`,
    hint: 'Send the call again with a new idempotency key.',
    reason: 'expired',
  }),
}

const kept = z.looseObject({
  code: z.string().refine((code): code is FailureCode => code in failures),
  detail: z.string(),
})

/** Rebuilds the failure from a stored problem. */
function failureOf(problem: unknown): Failure {
  const { code, detail, type: _type, title: _title, status: _status, ...members } = kept.parse(problem)
  // `toProblem` wrote these members.
  return new Failure(code, detail, { ...(members as FailureMembers), isReplayed: true })
}
