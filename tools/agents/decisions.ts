import { z } from 'zod'
import { decisionView, isKeyOf, showDecisions } from '../../src/audit/show-decisions.ts'
import { nextCursor, pageMembers, pageOf } from '../../src/base/page.ts'
import { Failure } from '../../src/failures/failure.ts'
import { personOf } from '../../src/kernel/context.ts'
import { defineTool } from '../../src/kernel/tool.ts'

export default defineTool({
  name: 'agents.decisions',
  title: 'Decisions',
  summary: 'List what was decided on the account’s spends, newest first, each with its signed receipt.',
  route: 'GET /api/agents/decisions',
  who: 'person',
  scopes: [],
  effect: 'read',
  mcp: false,
  input: z.strictObject({
    ...pageMembers,
    keyId: z.string().max(64).optional().describe('Only of this key: its `agentId`, `key_…`.'),
    verdict: z
      .enum(['allow', 'deny', 'insufficient_funds', 'approval_required'])
      .optional()
      .describe('Only with this verdict.'),
  }),
  output: z.strictObject({ decisions: z.array(decisionView).describe('The decisions.'), nextCursor }),
  failures: ['not_found'],
  example: { verdict: 'deny' },
  run: async (context, { keyId = null, verdict = null, ...input }) => {
    const accountId = personOf(context).account.id
    if (keyId !== null && !(await isKeyOf(context.database, { accountId, keyId })))
      throw new Failure('not_found', 'There is no such key of yours.', {
        hint: 'GET /api/agents/keys lists the agents that were not revoked.',
      })
    return showDecisions(context, { accountId, keyId, verdict, page: pageOf(input) })
  },
})
