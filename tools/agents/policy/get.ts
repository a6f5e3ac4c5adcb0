import { z } from 'zod'
import { readQuorums } from '../../../src/books/approvals/quorum.ts'
import { readOwnerCap } from '../../../src/books/spending/owner-cap.ts'
import { ownerCapView, viewOwnerCap } from '../../../src/books/spending/owner-cap-view.ts'
import { requirePerson } from '../../../src/kernel/context.ts'
import { defineTool } from '../../../src/kernel/tool.ts'

export default defineTool({
  name: 'agents.policy.get',
  title: 'Caps over all keys',
  summary: 'Read the daily, weekly and monthly caps over all keys of the account, and their usage.',
  description: 'The caps hold beside every key’s own policy: a spend needs room in both.',
  route: 'GET /api/agents/policy',
  who: 'person',
  effect: 'read',
  input: z.strictObject({}),
  output: ownerCapView,
  failures: [],
  example: {},
  run: async (context) => {
    const accountId = requirePerson(context).account.id
    return viewOwnerCap(
      await readOwnerCap(context.database, {
        accountId,
        isLocked: false,
        now: context.onCalendar(context.now),
      }),
      await readQuorums(context.database, accountId),
    )
  },
})
