/** Runs an approved call and stores its outcome. Idempotent: the call runs once. A card purchase is left to its card. A change is its owner's. */

import {
  type Approval,
  PURCHASE_RETRY_MS,
  storeApprovalOutcome,
  unfinishedApprovals,
} from '../books/approvals/approvals.ts'
import { findAllowedDecision, findDecisionTask } from '../books/spending/decisions.ts'
import { findStoredAnswer } from '../books/spending/idempotency.ts'
import { parseJson, toJson } from '../core/base/json.ts'
import type { AccountPrincipal } from '../core/base/principal.ts'
import { Failure, failures } from '../core/failures/failure.ts'
import { namedPayee } from '../records/contacts/payee.ts'
import type { FindKey, RunApproved, Services } from './context.ts'
import { hashSpendCall } from './fingerprint.ts'
import { findOwnerChange } from './owner-changes.ts'
import { hideShownOnce, type Outcome, recall, runCall } from './run.ts'
import type { Tool } from './tool.ts'

type Key = Extract<AccountPrincipal, { kind: 'key' }>

/** More recently updated calls may still be handled by the approving request. */
const QUIET_MS = 3_000
/** Longer than an owner's request makes a change. */
const CHANGE_MS = 60_000
const BATCH = 50

/**
 * Uses the current policy, budget and balance; only the owner's approval is not requested again. @throws Failure when
 * the outcome is unknown; the call may be repeated.
 */
export function createRunApproved(findTool: (name: string) => Tool | undefined): RunApproved {
  return (context, approval, findKey) => runApproved(context, approval, { findTool, findKey })
}

async function runApproved(
  context: Parameters<RunApproved>[0],
  approval: Approval,
  { findTool, findKey }: { findTool: (name: string) => Tool | undefined; findKey: FindKey },
): Promise<Approval> {
  const { database } = context
  const now = context.onCalendar(context.now)
  const keep = (outcome: Parameters<typeof storeApprovalOutcome>[1]['outcome']) =>
    storeApprovalOutcome(database, { id: approval.id, outcome, now })
  if (approval.cardId !== null) {
    const problem = findEnd(approval, now)
    return problem === null ? approval : keep({ problem: toJson(problem.toProblem()) })
  }
  // It is made by its caller. Once that began, or can no longer begin, its outcome is found as of any other.
  if (approval.awaitsCaller && approval.usedBy === null && now < approval.expiresAt) return approval
  if (approval.keyId === null) return keep(endPersonsCall(approval))
  const change = findOwnerChange(approval.operation)
  const tool = findTool(change?.tool ?? approval.operation)
  if (tool === undefined) throw new Error(`unknown operation ${approval.operation}`)
  const { principal } = context
  if (change !== undefined && principal?.kind !== 'session') return finishChange(context, approval)
  try {
    const { body } =
      change === undefined || principal === undefined
        ? await runOnce(context, { ...approval, keyId: approval.keyId }, { tool, findKey })
        : await runCall(
            tool,
            { ...context, principal, idempotencyKey: approval.id },
            parseJson(approval.input),
          )
    return await keep({ answer: toJson({ ...body, ...hideShownOnce(tool, body) }) })
  } catch (error) {
    if (!(error instanceof Failure)) throw error
    // Another gateway on the database may have the chain that was named when the approval was requested.
    const isElsewhere = error.code === 'chain_not_supported'
    // A change that conflicts with what holds by now never becomes right again.
    const isConflict = error.code === 'conflict'
    const mayBeRepeated = failures[error.code].retry || (isConflict && change === undefined) || isElsewhere
    if (mayBeRepeated && error.members.isFinal !== true) throw error
    const problem =
      isConflict && change !== undefined
        ? new Failure('conflict', error.message, {
            hint: 'Read what holds now, and ask for the change again.',
          })
        : error
    return keep({ problem: toJson(problem.toProblem()) })
  }
}

/** Outcome of a person's own call that the others agreed to, and that was not stored with it: it expired, or was interrupted. */
function endPersonsCall({ usedBy: decisionId }: Approval) {
  if (decisionId !== null) return { answer: { decisionId } }
  const expired = new Failure('conflict', 'The approval expired before the call was made again.', {
    reason: 'expired',
    isFinal: true,
  })
  return { problem: toJson(expired.toProblem()) }
}

/** Reason that an approved card purchase can no longer be tried again; null while it can. */
function findEnd({ decidedAt, endedAt }: Approval, now: Date): Failure | null {
  const hint = 'Try the purchase again: its card asks for a new approval.'
  if (endedAt !== null)
    return new Failure('conflict', 'The agent or its card was stopped before the purchase was tried again.', {
      reason: 'stopped',
      hint,
    })
  if (decidedAt !== null && now.getTime() - decidedAt.getTime() < PURCHASE_RETRY_MS) return null
  return new Failure('conflict', 'The purchase was not tried again within 15 minutes of its approval.', {
    reason: 'expired',
    hint,
  })
}

/** Ends an approved change that the request of its owner left without an outcome: it was made, or never will be. */
async function finishChange(
  context: Pick<Parameters<RunApproved>[0], 'database' | 'now' | 'onCalendar'>,
  approval: Approval,
): Promise<Approval> {
  const { database } = context
  const now = context.onCalendar(context.now)
  const { id, accountId, decidedAt } = approval
  if (decidedAt !== null && now.getTime() - decidedAt.getTime() < CHANGE_MS) return approval
  const answer = await findStoredAnswer(database, { principal: accountId, key: id })
  const lost = new Failure('conflict', 'The change was interrupted and not made.', {
    reason: 'interrupted',
    isFinal: true,
    hint: 'Ask for it again.',
  })
  const outcome = answer === undefined ? { problem: toJson(lost.toProblem()) } : { answer }
  return storeApprovalOutcome(database, { id, outcome, now })
}

/** Runs the call, or returns the outcome of the run that was allowed. @throws Failure of the call. */
async function runOnce(
  context: Parameters<RunApproved>[0],
  approval: Approval & { readonly keyId: string },
  { tool, findKey }: { tool: Tool; findKey: FindKey },
): Promise<Outcome> {
  const { database, now } = context
  const raw = parseJson(approval.input)
  // Without a client key, the approval id is the idempotency key, so the call cannot run twice.
  const idempotencyKey = approval.idempotencyKey ?? approval.id
  const fingerprint = hashSpendCall(context, tool.name, tool.decode(raw).input)
  const spent = { principal: approval.keyId, key: idempotencyKey, fingerprint }
  const found = await findKey(database, { id: approval.keyId })
  const principal: Key = { kind: 'key', ...found }
  // It stays part of the task that it was asked for.
  const task = approval.decisionId === null ? null : await findDecisionTask(database, approval.decisionId)
  const partial = approval.awaitsCaller ? ({ lacksInput: true } as const) : {}
  const payee = namedPayee.nullable().parse(approval.payee)
  const caller = {
    ...context,
    ...partial,
    ...(payee === null ? {} : { payee }),
    ...{ principal, idempotencyKey, task, approvedBy: approval.id },
  }
  // Money may have moved: the outcome is told even if the key, its scopes or the approval have ended since.
  const decisionId = approval.usedBy ?? (await findAllowedDecision(database, spent))
  if (decisionId !== undefined) return recall(tool, caller, { raw, decisionId })
  if (context.onCalendar(now) >= approval.expiresAt)
    throw new Failure('conflict', 'The approval expired before the call could run.', {
      reason: 'expired',
      isFinal: true,
    })
  const { status, expiresAt } = found.key
  if (status === 'revoked' || (expiresAt !== null && expiresAt <= now))
    throw new Failure('unknown_key', 'The requesting key was revoked or has expired.')
  return runCall(tool, caller, raw)
}

/** Finishes approved calls that a crash or a slow provider left open. A failing one does not block the others. */
export async function finishApprovals(
  services: Services,
  findKey: FindKey,
  signal: AbortSignal,
): Promise<number> {
  const at = services.onCalendar(services.clock()).getTime()
  const [before, retriedSince] = [new Date(at - QUIET_MS), new Date(at - PURCHASE_RETRY_MS)]
  let found = 0
  for (let after = '', isLast = false; !isLast && !signal.aborted; ) {
    const approvals = await unfinishedApprovals(services.database, {
      before,
      retriedSince,
      after,
      limit: BATCH,
    })
    for (const approval of approvals) {
      if (signal.aborted) break
      const now = services.clock()
      const context = { ...services, requestId: services.newId('req', now), now }
      await services
        .runApproved(context, approval, findKey)
        .catch((err: unknown) =>
          services.log.warn({ err, approvalId: approval.id }, 'finishing an approved call failed'),
        )
    }
    found += approvals.length
    after = approvals.at(-1)?.id ?? after
    isLast = approvals.length < BATCH
  }
  return found
}
