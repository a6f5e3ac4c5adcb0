/** Runs the very call that its owner has approved, and keeps what came of it. Safe to repeat: the call runs once. */
import { Failure, failures } from '../failure.ts'
import { parseJson, toJson } from '../json.ts'
import type { AccountPrincipal } from '../principal.ts'
import { type Approval, keepOutcome } from '../spending/approvals.ts'
import type { Context } from './context.ts'
import { run } from './run.ts'

/**
 * The policy, the budget and the balance are those of this moment; only the owner's word is not asked for again.
 * @param principal the key that asked, as it is now.
 * @throws Failure where it is not known how the call went: it may be repeated.
 */
export async function runApproved(
  context: Context,
  approval: Approval,
  principal: Extract<AccountPrincipal, { kind: 'key' }>,
): Promise<Approval> {
  const { database, now } = context
  const keep = (outcome: Parameters<typeof keepOutcome>[1]['outcome']) =>
    keepOutcome(database, { id: approval.id, outcome, now })
  const tool = context.operation(approval.operation)
  if (tool === undefined) throw new Error(`there is no operation ${approval.operation}`)
  try {
    const caller = {
      ...context,
      principal,
      // Without a key of its caller's the approval is the call's name, so that it cannot run twice.
      idempotencyKey: approval.idempotencyKey ?? approval.id,
      approvedBy: approval.id,
    }
    const { body } = await run(tool, caller, parseJson(approval.input))
    return await keep({ answer: toJson(body) })
  } catch (error) {
    if (!(error instanceof Failure) || failures[error.code].retry) throw error
    return keep({ problem: toJson(error.toProblem()) })
  }
}
