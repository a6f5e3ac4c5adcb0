import { z } from 'zod'
import { type BudgetPeriod, budgetPeriods } from '../../../policies/budget.ts'
import { policyAmount, usdMicrosOf } from '../../../policies/usd.ts'
import { personOf } from '../../../src/kernel/context.ts'
import { requireStepUp } from '../../../src/kernel/gates/step-up.ts'
import { recordChange } from '../../../src/kernel/record-change.ts'
import { defineTool } from '../../../src/kernel/tool.ts'
import { readOwnerCap, setOwnerCap } from '../../../src/spending/owner-cap.ts'
import { ownerCapView, viewOwnerCap } from '../../../src/spending/owner-cap-view.ts'

const cap = z.strictObject({ max: policyAmount.describe('USD, a decimal string or number.') }).nullable()

export default defineTool({
  name: 'agents.policy.set',
  title: 'Set the caps over all keys',
  summary: 'Set or remove the daily, weekly and monthly caps over all keys of the account (UTC).',
  description:
    'A lower cap applies from the next spend on every instance. Raising or removing one needs a fresh second factor. What was used stays counted.',
  route: 'PUT /api/agents/policy',
  who: 'person',
  scopes: [],
  effect: 'write',
  mcp: false,
  input: z.strictObject({
    dailyBudget: cap.describe('Cap of a UTC day; null removes it.'),
    weeklyBudget: cap.optional().describe('Cap of an ISO week (UTC); null removes it. Absent: unchanged.'),
    monthlyBudget: cap.optional().describe('Cap of a UTC month; null removes it. Absent: unchanged.'),
  }),
  output: ownerCapView,
  failures: ['step_up_required', 'mfa_enrollment_required'],
  example: { dailyBudget: { max: '100' } },
  run: async (context, { dailyBudget, weeklyBudget, monthlyBudget }) => {
    const { database, now } = context
    const accountId = personOf(context).account.id
    const before = await readOwnerCap(database, { accountId, isLocked: true, now })
    const caps = {
      day: microsOf(dailyBudget),
      week: weeklyBudget === undefined ? before.week.maxMicros : microsOf(weeklyBudget),
      month: monthlyBudget === undefined ? before.month.maxMicros : microsOf(monthlyBudget),
    }
    if (budgetPeriods.some((period) => isLooser(before[period].maxMicros, caps[period])))
      requireStepUp(context)
    await setOwnerCap(database, { accountId, caps })
    await recordChange(context, {
      action: 'policy.owner_cap_set',
      object: { kind: 'account', id: accountId },
      before: recorded({
        day: before.day.maxMicros,
        week: before.week.maxMicros,
        month: before.month.maxMicros,
      }),
      after: recorded(caps),
    })
    return viewOwnerCap({
      day: { ...before.day, maxMicros: caps.day },
      week: { ...before.week, maxMicros: caps.week },
      month: { ...before.month, maxMicros: caps.month },
    })
  },
})

function microsOf(cap: { readonly max: string } | null): bigint | null {
  return cap === null ? null : usdMicrosOf(cap.max)
}

function isLooser(before: bigint | null, after: bigint | null): boolean {
  return before !== null && (after === null || after > before)
}

function recorded({ day, week, month }: Readonly<Record<BudgetPeriod, bigint | null>>) {
  return {
    dailyMaxMicros: day?.toString() ?? null,
    weeklyMaxMicros: week?.toString() ?? null,
    monthlyMaxMicros: month?.toString() ?? null,
  }
}
