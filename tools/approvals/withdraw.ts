import { z } from 'zod'
import { approvalView } from '../../src/books/approvals/approval-view.ts'
import {
  type Approval,
  type ApprovalOwner,
  decideApproval,
  findApproval,
} from '../../src/books/approvals/approvals.ts'
import { Failure } from '../../src/core/failures/failure.ts'
import { type Context, requireCaller } from '../../src/kernel/context.ts'
import { recordChange } from '../../src/kernel/record-change.ts'
import { defineTool } from '../../src/kernel/tool.ts'
import { viewNamedApproval } from '../../src/records/contacts/approvals.ts'

export default defineTool({
  name: 'approvals.withdraw',
  title: 'Withdraw a request for approval',
  summary: 'Withdraw a pending request of your own for approval. Its call is not made.',
  description: 'Use it when the call is no longer wanted.',
  restDescription: 'Repeating it returns the same approval; a decided one is a `conflict`.',
  route: 'DELETE /api/approvals/{id}',
  who: 'account',
  scopes: [],
  effect: 'write',
  proof: 'none',
  mcp: true,
  stops: true,
  // Names of contacts are stored sealed in one place only.
  shownOnce: ['contact'],
  policies: 'response',
  input: z.strictObject({ id: z.string().max(64).describe('`approvalId`: `appr_…`') }),
  output: approvalView,
  failures: ['not_found', 'conflict'],
  example: { id: 'appr_01h455vb4pex5vsknk084sn02q' },
  run: async (context, { id }) => {
    const caller = requireCaller(context)
    const keyId = caller.kind === 'key' ? caller.key.id : null
    const owner = { accountId: caller.account.id, keyId }
    const status = 'withdrawn' as const
    const withdrawn = await decideApproval(context.database, {
      ...owner,
      id,
      status,
      note: null,
      at: context.onCalendar(context.now),
    })
    if (withdrawn === undefined) return viewNamedApproval(context, await requireWithdrawn(context, owner, id))
    await recordChange(context, {
      action: 'approval.withdrawn',
      object: { kind: 'approval', id },
      after: { keyId: withdrawn.keyId },
    })
    return viewNamedApproval(context, withdrawn)
  },
})

/** @throws Failure `not_found`, `conflict` when the approval has ended in another way. */
async function requireWithdrawn(
  { database, now, onCalendar }: Pick<Context, 'database' | 'now' | 'onCalendar'>,
  owner: ApprovalOwner,
  id: string,
): Promise<Approval> {
  const approval = await findApproval(database, { ...owner, id, now: onCalendar(now) })
  if (approval === undefined) throw new Failure('not_found', 'You have no such approval.')
  if (approval.status === 'withdrawn') return approval
  throw new Failure('conflict', `This approval is ${approval.status}.`, {
    reason: approval.status,
    hint: `Read it: GET /api/approvals/${id}.`,
  })
}
