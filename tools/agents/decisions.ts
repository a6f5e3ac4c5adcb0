import { z } from 'zod'
import { nextCursor, pageMembers, toPage } from '../../src/core/base/page.ts'
import { Failure } from '../../src/core/failures/failure.ts'
import { requireCaller } from '../../src/kernel/context.ts'
import { defineTool } from '../../src/kernel/tool.ts'
import { decisionView, ownsKey, showDecisions } from '../../src/records/decisions/show-decisions.ts'

export default defineTool({
  name: 'agents.decisions',
  title: 'Decisions',
  summary: 'List the decisions on spends, newest first, each with its signed, verified receipt.',
  description:
    'Use it to prove or explain why a spend was allowed or denied; a key sees its own. For what moved use GET /api/activity.',
  route: 'GET /api/agents/decisions',
  who: 'account',
  scopes: [],
  effect: 'read',
  mcp: true,
  verbatim: ['decisions'],
  restOnly: ['agentId', 'decisionId'],
  input: z.strictObject({
    ...pageMembers,
    keyId: z.string().max(64).optional().describe('Key: its `agentId`, `key_…`.'),
    agentId: z.string().max(64).optional().describe('The same as `keyId`.'),
    id: z.string().max(64).optional().describe('Only this decision: `dec_…`.'),
    decisionId: z.string().max(64).optional().describe('The same as `id`.'),
    object: z
      .string()
      .max(64)
      .optional()
      .describe('Only the one on this object: `tx_…`, `buy_…`, `out_…`, `ord_…`.'),
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
  run: async (context, input) => {
    const { agentId = null, keyId = agentId, decisionId, id = decisionId, object, verdict = null } = input
    const caller = requireCaller(context)
    const accountId = caller.account.id
    const found = { id: id ?? null, object: object ?? null, verdict, page: toPage(input) }
    if (caller.kind === 'key') {
      const own = caller.key.id
      if (keyId !== null && keyId !== own)
        throw new Failure('not_found', 'A key sees its own decisions only.', { hint: 'Leave keyId out.' })
      return showDecisions(context, { ...found, accountId, keyId: own })
    }
    if (keyId !== null && !(await ownsKey(context.database, { accountId, keyId })))
      throw new Failure('not_found', 'You have no such key.', {
        hint: 'GET /api/agents/keys lists the agents that were not revoked.',
      })
    return showDecisions(context, { ...found, accountId, keyId })
  },
})
