/** Runs an approved call and stores its outcome. Idempotent: the call runs once. */

import { parseJson, toJson } from '../base/json.ts'
import type { AccountPrincipal } from '../base/principal.ts'
import { Failure, failures } from '../failures/failure.ts'
import { type Approval, storeApprovalOutcome, unfinishedApprovals } from '../spending/approvals.ts'
import { findAllowedDecision } from '../spending/decisions.ts'
import type { FindKey, RunApproved, Services } from './context.ts'
import { fingerprintOf } from './fingerprint.ts'
import { run } from './run.ts'
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
  const refuse = (failure: Failure) => keep({ problem: toJson(failure.toProblem()) })
  const tool = findTool(approval.operation)
  if (tool === undefined) throw new Error(`unknown operation ${approval.operation}`)
  const input = parseJson(approval.input)
  // Without a client key, the approval id is the idempotency key, so the call cannot run twice.
  const idempotencyKey = approval.idempotencyKey ?? approval.id
  const fingerprint = fingerprintOf(tool.name, tool.decode(input).input)
  const spent = { principal: approval.keyId, key: idempotencyKey, fingerprint }
  // A started call is always finished; a call that has not started must start before the approval expires.
  if (now >= approval.expiresAt && (await findAllowedDecision(database, spent)) === undefined)
    return refuse(
      new Failure('conflict', 'The approval expired before the call could run.', { reason: 'expired' }),
    )
  const found = await findKey(database, { id: approval.keyId })
  if (found === undefined || (found.key.expiresAt !== null && found.key.expiresAt <= now))
    return refuse(new Failure('unknown_key', 'The requesting key was revoked or has expired.'))
  try {
    const principal: Key = { kind: 'key', ...found }
    const { body } = await run(
      tool,
      { ...context, principal, idempotencyKey, approvedBy: approval.id },
      input,
    )
    return await keep({ answer: toJson(body) })
  } catch (error) {
    if (!(error instanceof Failure)) throw error
    const mayBeRepeated = failures[error.code].retry || error.code === 'conflict'
    if (mayBeRepeated && error.members.isFinal !== true) throw error
    return refuse(error)
  }
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
