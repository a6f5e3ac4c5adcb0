/** Runs an approved call and stores its outcome. Idempotent: the call runs once. */

import { parseJson, toJson } from '../base/json.ts'
import type { AccountPrincipal } from '../base/principal.ts'
import { Failure, failures } from '../failures/failure.ts'
import { type Approval, storeApprovalOutcome, unfinishedApprovals } from '../spending/approvals.ts'
import { findAllowedDecision } from '../spending/decisions.ts'
import type { FindKey, RunApproved, Services } from './context.ts'
import { fingerprintOf } from './fingerprint.ts'
import { hiddenOf, type Outcome, recall, run } from './run.ts'
import type { Tool } from './tool.ts'

type Key = Extract<AccountPrincipal, { kind: 'key' }>

/** More recently updated calls may still be handled by the approving request. */
const QUIET_MS = 3_000
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
  const { database, now } = context
  const keep = (outcome: Parameters<typeof storeApprovalOutcome>[1]['outcome']) =>
    storeApprovalOutcome(database, { id: approval.id, outcome, now })
  const tool = findTool(approval.operation)
  if (tool === undefined) throw new Error(`unknown operation ${approval.operation}`)
  try {
    const { body } = await runOnce(context, approval, { tool, findKey })
    return await keep({ answer: toJson({ ...body, ...hiddenOf(tool, body) }) })
  } catch (error) {
    if (!(error instanceof Failure)) throw error
    const mayBeRepeated = failures[error.code].retry || error.code === 'conflict'
    if (mayBeRepeated && error.members.isFinal !== true) throw error
    return keep({ problem: toJson(error.toProblem()) })
  }
}

/** Runs the call, or returns the outcome of the run that was allowed. @throws Failure of the call. */
async function runOnce(
  context: Parameters<RunApproved>[0],
  approval: Approval,
  { tool, findKey }: { tool: Tool; findKey: FindKey },
): Promise<Outcome> {
  const { database, now } = context
  const raw = parseJson(approval.input)
  // Without a client key, the approval id is the idempotency key, so the call cannot run twice.
  const idempotencyKey = approval.idempotencyKey ?? approval.id
  const fingerprint = fingerprintOf(tool.name, tool.decode(raw).input)
  const spent = { principal: approval.keyId, key: idempotencyKey, fingerprint }
  const found = await findKey(database, { id: approval.keyId })
  const principal: Key = { kind: 'key', ...found }
  const caller = { ...context, principal, idempotencyKey, approvedBy: approval.id }
  // Money may have moved: the outcome is told even if the key, its scopes or the approval have ended since.
  const decisionId = approval.usedBy ?? (await findAllowedDecision(database, spent))
  if (decisionId !== undefined) return recall(tool, caller, { raw, decisionId })
  if (now >= approval.expiresAt)
    throw new Failure('conflict', 'The approval expired before the call could run.', {
      reason: 'expired',
      isFinal: true,
    })
  const { status, expiresAt } = found.key
  if (status === 'revoked' || (expiresAt !== null && expiresAt <= now))
    throw new Failure('unknown_key', 'The requesting key was revoked or has expired.')
  return run(tool, caller, raw)
}

/** Finishes approved calls that a crash or a slow provider left open. A failing one does not block the others. */
export async function finishApprovals(
  services: Services,
  findKey: FindKey,
  signal: AbortSignal,
): Promise<number> {
  const before = new Date(services.clock().getTime() - QUIET_MS)
  let found = 0
  for (let after = '', isLast = false; !isLast && !signal.aborted; ) {
    const approvals = await unfinishedApprovals(services.database, { before, after, limit: BATCH })
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
