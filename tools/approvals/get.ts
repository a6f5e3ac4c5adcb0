import { z } from 'zod'
import { approvalView } from '../../src/books/approvals/approval-view.ts'
import { findApproval } from '../../src/books/approvals/approvals.ts'
import { findUsedUp } from '../../src/books/approvals/used-up.ts'
import { Failure } from '../../src/core/failures/failure.ts'
import { requireCaller } from '../../src/kernel/context.ts'
import { defineTool } from '../../src/kernel/tool.ts'
import { viewNamedApproval } from '../../src/records/contacts/approvals.ts'

export default defineTool({
  name: 'approvals.get',
  title: 'Approval status',
  summary: 'Read an approval: the owner’s decision, and the outcome of the approved call.',
  description:
    'Use it after `approval_required`, every few seconds. Once approved, the call has run: `answer` is its answer, `problem` its error; do not call again. `rejected` and `expired` are final: do what `note` says.',
  restDescription: 'A key sees only its own approvals.',
  route: 'GET /api/approvals/{id}',
  who: 'account',
  scopes: [],
  effect: 'read',
  mcp: true,
  policies: 'response',
  input: z.strictObject({ id: z.string().max(64).describe('`approvalId`: `appr_…`') }),
  output: approvalView,
  failures: ['not_found'],
  example: { id: 'appr_01h455vb4pex5vsknk084sn02q' },
  run: async (context, { id }) => {
    const caller = requireCaller(context)
    const keyId = caller.kind === 'key' ? caller.key.id : null
    const owner = { accountId: caller.account.id, keyId }
    const approval = await findApproval(context.database, {
      ...owner,
      id,
      now: context.onCalendar(context.now),
    })
    if (approval === undefined) throw new Failure('not_found', 'You have no such approval.')
    const shown = await viewNamedApproval(context, approval)
    if (approval.status !== 'pending') return shown
    return { ...shown, usesUp: await findUsedUp(context.database, approval, context.onCalendar(context.now)) }
  },
})
