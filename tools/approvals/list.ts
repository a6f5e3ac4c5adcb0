import { z } from 'zod'
import { approvalStatus, approvalView } from '../../src/books/approvals/approval-view.ts'
import { listApprovals } from '../../src/books/approvals/approvals.ts'
import { cutPage, nextCursor, pageMembers, toPage } from '../../src/core/base/page.ts'
import { requirePerson } from '../../src/kernel/context.ts'
import { defineTool } from '../../src/kernel/tool.ts'
import { viewApprovals } from '../../src/records/contacts/approvals.ts'

export default defineTool({
  name: 'approvals.list',
  title: 'Approvals',
  summary: 'List the approvals that the account’s agents have requested, newest first.',
  description:
    'Each has the call that waits, the rules that it broke, and until when it can be decided. Continue with `cursor`.',
  route: 'GET /api/approvals',
  who: 'person',
  effect: 'read',
  policies: 'response',
  input: z.strictObject({ ...pageMembers, status: approvalStatus.optional().describe('Filter by status.') }),
  output: z.strictObject({
    approvals: z.array(approvalView).describe('Approvals of this page, newest first.'),
    nextCursor,
  }),
  failures: [],
  example: { status: 'pending' },
  run: async (context, { status, ...input }) => {
    const page = toPage(input)
    const accountId = requirePerson(context).account.id
    const { rows, nextCursor } = cutPage(
      await listApprovals(context.database, {
        accountId,
        status,
        page,
        now: context.onCalendar(context.now),
      }),
      page,
    )
    return { approvals: await viewApprovals(context, accountId, rows, { isForPerson: true }), nextCursor }
  },
})
