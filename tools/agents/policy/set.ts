import { z } from 'zod'
import { policyAmount, usdMicrosOf } from '../../../policies/usd.ts'
import { personOf } from '../../../src/kernel/context.ts'
import { requireStepUp } from '../../../src/kernel/gates/step-up.ts'
import { recordChange } from '../../../src/kernel/record-change.ts'
import { defineTool } from '../../../src/kernel/tool.ts'
import { readOwnerCap, setOwnerCap } from '../../../src/spending/owner-cap.ts'
import { ownerCapView, viewOwnerCap } from '../../../src/spending/owner-cap-view.ts'

export default defineTool({
  name: 'agents.policy.set',
  title: 'Set the cap over all keys',
  summary: 'Set or remove the daily cap over all keys of the account (UTC day).',
  description:
    'A lower cap applies from the next spend on every instance. Raising or removing it needs a fresh second factor. Today’s usage stays counted.',
  route: 'PUT /api/agents/policy',
  who: 'person',
  scopes: [],
  effect: 'write',
  mcp: false,
  input: z.strictObject({
    dailyBudget: z
      .strictObject({ max: policyAmount.describe('USD, a decimal string or number.') })
      .nullable()
      .describe('Daily cap; null removes it.'),
  }),
  output: ownerCapView,
  failures: ['step_up_required', 'mfa_enrollment_required'],
  example: { dailyBudget: { max: '100' } },
  run: async (context, { dailyBudget }) => {
    const { database, now } = context
    const accountId = personOf(context).account.id
    const before = await readOwnerCap(database, { accountId, isLocked: true, now })
    const maxMicros = dailyBudget === null ? null : usdMicrosOf(dailyBudget.max)
    const isLooser = before.maxMicros !== null && (maxMicros === null || maxMicros > before.maxMicros)
    if (isLooser) requireStepUp(context)
    await setOwnerCap(database, { accountId, maxMicros })
    await recordChange(context, {
      action: 'policy.owner_cap_set',
      object: { kind: 'account', id: accountId },
      before: { dailyMaxMicros: before.maxMicros?.toString() ?? null },
      after: { dailyMaxMicros: maxMicros?.toString() ?? null },
    })
    return viewOwnerCap({ ...before, maxMicros })
  },
})
