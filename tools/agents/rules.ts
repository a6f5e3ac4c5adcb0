import { z } from 'zod'
import { explainDecision, explainedRule } from '../../src/books/spending/explain-decision.ts'
import { requirePerson } from '../../src/kernel/context.ts'
import { defineTool } from '../../src/kernel/tool.ts'
import { refuseArchived } from '../../src/records/decisions/show-decisions.ts'

export default defineTool({
  name: 'agents.rules',
  title: 'Rules of a decision',
  summary: 'List every rule that a decision evaluated, with its limit, what was used, and the result.',
  description: 'Use it to show why a spend was allowed. `used` leaves out spends that came back since.',
  route: 'GET /api/agents/decisions/{id}/rules',
  who: 'person',
  effect: 'read',
  input: z.strictObject({ id: z.string().max(64).describe('Decision: `dec_…`.') }),
  output: z.strictObject({
    decisionId: z.string().describe('`dec_…`.'),
    policyVersion: z.int().nullable().describe('Version of the policy; null for a person.'),
    complete: z.boolean().describe('False if the policy is another since: only violated rules are listed.'),
    rules: z.array(explainedRule).describe('Evaluated rules, in the order of the policy.'),
  }),
  failures: ['not_found'],
  example: { id: 'dec_01h455vb4pex5vsknk084sn02q' },
  run: async (context, { id }) => {
    const accountId = requirePerson(context).account.id
    await refuseArchived(context.database, { accountId, keyId: null, id, object: null })
    const { policyVersion, isComplete, rules } = await explainDecision(context.database, { id, accountId })
    return { decisionId: id, policyVersion, complete: isComplete, rules: [...rules] }
  },
})
