/** Failures for calls that require approval. */
import { z } from 'zod'
import { type Approval, requestApproval } from '../../books/approvals/approvals.ts'
import { parseNote } from '../../books/spending/spend-note.ts'
import { writeJson } from '../../core/base/json.ts'
import { visibleText } from '../../core/base/untrusted-text.ts'
import { Failure, type FailureCode, type FailureMembers, failures } from '../../core/failures/failure.ts'
import type { Context } from '../context.ts'
import { hashSpendCall } from '../fingerprint.ts'
import type { Call } from '../tool.ts'

/** One day, for policies that were changed in the meantime. */
export const DEFAULT_TTL_SECONDS = 86_400

export interface PendingDecision {
  readonly operation: string
  readonly call: Pick<Call, 'input' | 'raw' | 'isWhole'>
  /** Key that asks; null: the person of `askerId`. */
  readonly key: { readonly id: string } | null
  readonly askerId?: string
  readonly accountId: string
  /** Null for a call that spends nothing. */
  readonly decisionId: string | null
  readonly isReplayed: boolean
  readonly ttlSeconds: number | undefined
  /** Description of the call. */
  readonly what: string
}

/**
 * Requests the owner's approval, and returns its state: `approval_required`, the failure of the approved call, or `conflict` when
 * too many are open.
 */
export async function awaitApproval(context: Context, waiting: PendingDecision): Promise<Failure> {
  const {
    operation,
    call,
    key,
    askerId = null,
    accountId,
    decisionId,
    ttlSeconds = DEFAULT_TTL_SECONDS,
  } = waiting
  const approval = await requestApproval(context, {
    accountId,
    keyId: key?.id ?? null,
    askerId,
    decisionId,
    operation,
    input: writeJson(call.raw),
    payee: context.payee ?? null,
    fingerprint: hashSpendCall(context, operation, call.input),
    idempotencyKey: context.idempotencyKey,
    reason: parseNote(call.input).reason,
    violations: [],
    ttlSeconds,
    at: context.onCalendar(context.now),
    isAsked: false,
    isReplayed: waiting.isReplayed,
    awaitsCaller: !call.isWhole,
  })
  if (approval === undefined) return tooManyOpen()
  if (approval.problem !== null) return toFailure(approval.problem)
  if (approval.status === 'rejected') return buildOwnerRejection(approval, waiting.what)
  const texts = {
    ...statusTexts,
    ...(approval.askerId !== null ? othersTexts : approval.awaitsCaller ? callersTexts : {}),
  }
  const { detail, hint, reason } = texts[approval.status](waiting.what)
  return new Failure('approval_required', detail, {
    ...(decisionId === null ? {} : { decisionId }),
    approvalId: approval.id,
    approvalUrl: approvalUrl(context.settings, approval.id),
    isReplayed: waiting.isReplayed,
    reason,
    hint,
  })
}

/** "A spend of 8 USDC" within a sentence. */
function withinSentence(what: string): string {
  return what.charAt(0).toLowerCase() + what.slice(1)
}

/** Failure of a call that its owner rejected. @param what description of the call. */
export function buildOwnerRejection(
  { id, decisionId, note }: Pick<Approval, 'id' | 'decisionId' | 'note'>,
  what: string,
): Failure {
  const words = note === null ? '.' : `: “${visibleText(note)}”`
  return new Failure('approval_rejected', `The owner rejected ${withinSentence(what)}${words}`, {
    ...(decisionId === null ? {} : { decisionId }),
    approvalId: id,
    ...(note === null ? {} : { note }),
    isReplayed: true,
    hint: 'Do what the note says, and do not repeat the call. If the owner asks for it, send it with a new idempotency key.',
  })
}

/** Failure for a request while the owner has not decided as many as may be open. */
export function tooManyOpen(): Failure {
  return new Failure(
    'conflict',
    'The key has ten open requests for approval, or the account a hundred, or the key has withdrawn thirty within an hour.',
    {
      reason: 'too_many_open',
      hint: 'Wait for the owner, or withdraw one of them: DELETE /api/approvals/{id}.',
    },
  )
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

const statusTexts: Readonly<Record<Exclude<Approval['status'], 'rejected'>, (what: string) => StatusText>> = {
  pending: (what) => ({
    detail: `${what} requires the owner's approval. No money is held yet.`,
    hint: 'Ask the owner to approve it at approvalUrl. Then poll GET /api/approvals/{approvalId}, or repeat the call with the same idempotency key.',
  }),
  approved: (what) => ({
    detail: `${what} was approved and is pending.`,
    hint: 'Repeat the call with the same idempotency key in a second.',
    reason: 'running',
  }),
  withdrawn: (what) => ({
    detail: `The request for approval of ${withinSentence(what)} was withdrawn.`,
    hint: 'Do not repeat the call unless the owner asks for it; a new call requires a new idempotency key.',
    reason: 'withdrawn',
  }),
  expired: (what) => ({
    detail: `The owner did not approve ${withinSentence(what)} in time.`,
    hint: 'Send the call again with a new idempotency key.',
    reason: 'expired',
  }),
}

/** Of a person's own payment. */
const othersTexts: Pick<typeof statusTexts, 'pending' | 'approved' | 'expired'> = {
  pending: (what) => ({
    detail: `${what} requires the agreement of other people of the account. No money is held yet.`,
    hint: 'They agree at approvalUrl. Once they have, make this call again yourself with the same idempotency key, and a new signature where it is signed.',
    reason: 'quorum',
  }),
  approved: (what) => ({
    detail: `${what} was agreed to and awaits its call.`,
    hint: 'Make the call again with the same idempotency key.',
    reason: 'awaits_caller',
  }),
  expired: (what) => ({
    detail: `The others did not agree to ${withinSentence(what)} in time.`,
    hint: 'Send the call again with a new idempotency key.',
    reason: 'expired',
  }),
}

/** Of a call whose login, cookies, API keys or long body are not kept: the gateway cannot make it. */
const callersTexts: Pick<typeof statusTexts, 'pending' | 'approved'> = {
  pending: (what) => ({
    detail: `${what} requires the owner's approval. No money is held yet.`,
    hint: 'Ask the owner to approve it at approvalUrl, and poll GET /api/approvals/{approvalId}. Once it is approved, make this call again yourself, with the same idempotency key, login and body: logins and bodies over 64 KiB are not kept, so that it does not run by itself.',
  }),
  approved: (what) => ({
    detail: `${what} was approved and awaits its call.`,
    hint: 'Make the call again with the same idempotency key, login and body, before the approval expires: logins and bodies over 64 KiB are not kept.',
    reason: 'awaits_caller',
  }),
}

const kept = z.looseObject({
  code: z.string().refine((code): code is FailureCode => code in failures),
  detail: z.string(),
})

/** Rebuilds the failure from a stored problem. */
function toFailure(problem: unknown): Failure {
  const { code, detail, type: _type, title: _title, status: _status, ...members } = kept.parse(problem)
  // `toProblem` wrote these members.
  return new Failure(code, detail, { ...(members as FailureMembers), isReplayed: true })
}
