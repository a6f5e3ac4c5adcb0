import { z } from 'zod'
import { approvalView } from '../../src/books/approvals/approval-view.ts'
import { type Approval, decideApproval, findApproval } from '../../src/books/approvals/approvals.ts'
import { Failure } from '../../src/core/failures/failure.ts'
import { type Context, requirePerson } from '../../src/kernel/context.ts'
import { requireStepUp } from '../../src/kernel/gates/step-up.ts'
import { recordChange } from '../../src/kernel/record-change.ts'
import { defineTool } from '../../src/kernel/tool.ts'
import { findIssuedKey } from '../../src/people/identity/store.ts'
import { viewNamedApproval } from '../../src/records/contacts/approvals.ts'

export default defineTool({
  name: 'approvals.decide',
  title: 'Approve or reject',
  summary: 'Approve or reject the exact call that an agent requested. Approving runs it once.',
  description:
    'Approving needs a fresh second factor; rejecting does not. Approving overrules the rules in "violations", once and for this call only; it counts in the budgets. The call runs under the key’s current policy, budget and balance, so it can still fail; "problem" then gives the reason. Repeating an approval whose call has no outcome yet completes it.',
  route: 'POST /api/approvals/{id}',
  who: 'person',
  role: 'approver',
  effect: 'write',
  proof: 'conditional',
  ownTransactions: true,
  stops: true,
  // Names of contacts are stored sealed in one place only.
  shownOnce: ['contact'],
  input: z.strictObject({
    id: z.string().max(64).describe('`approvalId`: `appr_…`'),
    decision: z.enum(['approve', 'reject']).describe('Decision of the owner.'),
    note: z.string().trim().min(1).max(500).optional().describe('Note to the agent, at most 500 characters.'),
  }),
  output: approvalView,
  failures: ['not_found', 'conflict', 'step_up_required', 'mfa_enrollment_required', 'settlement_pending'],
  example: { id: 'appr_01h455vb4pex5vsknk084sn02q', decision: 'reject' },
  run: async (context, { id, decision, note = null }) => {
    if (decision === 'approve') requireStepUp(context)
    const status = decision === 'approve' ? ('approved' as const) : ('rejected' as const)
    const accountId = requirePerson(context).account.id
    const decided =
      (await context.database.transaction(async (transaction) => {
        const at = context.onCalendar(context.now)
        const own = await decideApproval(transaction, { accountId, keyId: null, id, status, note, at })
        if (own === undefined) return undefined
        const rules = own.violations.map(({ rule }) => rule)
        const after = { keyId: own.keyId, ...(rules.length === 0 ? {} : { violated: rules }) }
        const object = { kind: 'approval' as const, id }
        await recordChange(context, { action: `approval.${status}`, object, after }, transaction)
        return own
      })) ?? (await requireSameDecision(context, { id, status }))
    if (decided.status !== 'approved' || decided.answer !== null || decided.problem !== null)
      return viewNamedApproval(context, decided)
    return viewNamedApproval(context, await context.runApproved(context, decided, findIssuedKey))
  },
})

/** Repeating the same decision returns the approval; a different decision is rejected. */
async function requireSameDecision(
  context: Context,
  { id, status }: { id: string; status: 'approved' | 'rejected' },
): Promise<Approval> {
  const owner = { accountId: requirePerson(context).account.id, keyId: null }
  const approval = await findApproval(context.database, {
    ...owner,
    id,
    now: context.onCalendar(context.now),
  })
  if (approval === undefined) throw new Failure('not_found', 'You have no such approval.')
  if (approval.status === status) return approval
  throw new Failure('conflict', `This approval is ${approval.status}.`, {
    reason: approval.status,
    hint: 'An approval is decided once, before it expires; the agent can request a new one.',
  })
}
