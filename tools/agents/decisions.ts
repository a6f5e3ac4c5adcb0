import { z } from 'zod'
import { decisionView, isKeyOf, showDecisions } from '../../src/audit/show-decisions.ts'
import { nextCursor, pageMembers, pageOf } from '../../src/base/page.ts'
import { Failure } from '../../src/failures/failure.ts'
import { callerOf } from '../../src/kernel/context.ts'
import { defineTool } from '../../src/kernel/tool.ts'

export default defineTool({
  name: 'agents.decisions',
  title: 'Decisions',
  summary: 'List the decisions on spends, newest first, each with its signed receipt; a key sees its own.',
  description:
    'Use it to prove or explain why a spend was allowed or denied. For what moved use GET /api/activity. Free.',
  route: 'GET /api/agents/decisions',
  who: 'account',
  scopes: [],
  effect: 'read',
  mcp: true,
  restOnly: ['agentId', 'decisionId'],
  input: z.strictObject({
    ...pageMembers,
    keyId: z.string().max(64).optional().describe('Filter by key: its `agentId`, `key_…`.'),
    agentId: z.string().max(64).optional().describe('The same as `keyId`.'),
    decisionId: z.string().max(64).optional().describe('Only the decision with this id: `dec_…`.'),
    verdict: z
      .enum(['allow', 'deny', 'insufficient_funds', 'approval_required'])
      .optional()
      .describe('Filter by verdict.'),
  }),
  output: z.strictObject({
    decisions: z.array(decisionView).describe('Decisions of this page, newest first.'),
    nextCursor,
  }),
  failures: ['not_found'],
  example: { verdict: 'deny' },
  run: async (context, { agentId = null, keyId = agentId, decisionId = null, verdict = null, ...input }) => {
    const caller = callerOf(context)
    const accountId = caller.account.id
    const page = pageOf(input)
    if (caller.kind === 'key') {
      const own = caller.key.id
      if (keyId !== null && keyId !== own)
        throw new Failure('not_found', 'A key sees its own decisions only.', { hint: 'Leave keyId out.' })
      return showDecisions(context, { accountId, keyId: own, verdict, decisionId, page })
    }
    if (keyId !== null && !(await isKeyOf(context.database, { accountId, keyId })))
      throw new Failure('not_found', 'You have no such key.', {
        hint: 'GET /api/agents/keys lists the agents that were not revoked.',
      })
    return showDecisions(context, { accountId, keyId, verdict, decisionId, page })
  },
})
