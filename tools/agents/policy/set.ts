import { z } from 'zod'
import type { BudgetPeriod } from '../../../policies/budget.ts'
import { type Directions, looserMembers } from '../../../policies/directions.ts'
import { isQuorumLooser, quorums } from '../../../policies/quorum.ts'
import { formatUsd, policyAmount, toUsdMicros } from '../../../policies/usd.ts'
import {
  readQuorums,
  requireEnoughPeople,
  setQuorums,
  sortQuorums,
} from '../../../src/books/approvals/quorum.ts'
import { readOwnerCap, setOwnerCap } from '../../../src/books/spending/owner-cap.ts'
import { ownerCapView, viewOwnerCap } from '../../../src/books/spending/owner-cap-view.ts'
import { type Context, requirePerson } from '../../../src/kernel/context.ts'
import { requireProofToLoosen } from '../../../src/kernel/gates/step-up.ts'
import { recordChange } from '../../../src/kernel/record-change.ts'
import { defineTool } from '../../../src/kernel/tool.ts'
import { listPeople, lockPeople } from '../../../src/people/identity/members/memberships.ts'
import { sendSecurityNotice } from '../../../src/people/identity/security-notices.ts'

const cap = z.strictObject({ max: policyAmount.describe('USD, a decimal string or number.') }).nullable()

/** Millionths of a US dollar; null: no cap. */
type Caps = Readonly<Record<BudgetPeriod, bigint | null>>

const caps = z.strictObject({
  dailyBudget: cap.optional().describe('Cap of a UTC day; null removes it. Absent: unchanged.'),
  weeklyBudget: cap.optional().describe('Cap of an ISO week (UTC); null removes it. Absent: unchanged.'),
  monthlyBudget: cap.optional().describe('Cap of a UTC month; null removes it. Absent: unchanged.'),
  refundsRefill: z
    .boolean()
    .optional()
    .describe(
      'True: money that comes back returns to the budgets that it was spent from. Default at first: true. Absent: unchanged.',
    ),
  approvals: quorums
    .optional()
    .describe(
      'How many different people must agree to a payment, by amount; [] asks nobody. Absent: unchanged.',
    ),
})

const directions: Directions<z.output<typeof caps>> = {
  dailyBudget: { max: 'higher' },
  weeklyBudget: { max: 'higher' },
  monthlyBudget: { max: 'higher' },
  refundsRefill: 'on',
  approvals: isQuorumLooser,
}

export default defineTool({
  name: 'agents.policy.set',
  title: 'Set the caps over all keys',
  summary: 'Set or remove the daily, weekly and monthly caps over all keys of the account (UTC).',
  description:
    'A lower cap applies from the next spend on every instance. Raising or removing one needs a fresh second factor. What was used stays counted. `approvals`: payments above an amount need so many different people, never the one who asks; lowering one loosens, and is mailed to the people of the account. `conflict`: there are fewer owners and approvers.',
  route: 'PUT /api/agents/policy',
  who: 'person',
  effect: 'write',
  proof: 'loosening',
  stops: true,
  input: caps,
  loosens: directions,
  output: ownerCapView,
  failures: ['step_up_required', 'mfa_enrollment_required', 'conflict'],
  example: { dailyBudget: { max: '100' } },
  run: async (context, { dailyBudget, weeklyBudget, monthlyBudget, ...input }) => {
    const { database } = context
    const now = context.onCalendar(context.now)
    const accountId = requirePerson(context).account.id
    // Nobody leaves or is lowered while it is checked that there are enough people.
    await lockPeople(database, [accountId])
    const before = await readOwnerCap(database, { accountId, isLocked: true, now })
    const next = {
      day: dailyBudget === undefined ? before.day.maxMicros : toMicros(dailyBudget),
      week: weeklyBudget === undefined ? before.week.maxMicros : toMicros(weeklyBudget),
      month: monthlyBudget === undefined ? before.month.maxMicros : toMicros(monthlyBudget),
    }
    const present = { day: before.day.maxMicros, week: before.week.maxMicros, month: before.month.maxMicros }
    const { refundsRefill = before.refundsRefill } = input
    const asked = await readQuorums(database, accountId)
    const approvals = input.approvals === undefined ? asked : sortQuorums(input.approvals)
    const [former, latter] = [
      { ...viewCaps(present), refundsRefill: before.refundsRefill, approvals: [...asked] },
      { ...viewCaps(next), refundsRefill, approvals: [...approvals] },
    ]
    requireProofToLoosen(context, looserMembers(directions, former, latter))
    if (input.approvals !== undefined) {
      await requireEnoughPeople(database, accountId, approvals)
      await setQuorums(database, { accountId, steps: approvals })
      if (isQuorumLooser(asked, approvals)) await tellPeople(context, accountId)
    }
    await setOwnerCap(database, { accountId, caps: next, refundsRefill })
    await recordChange(context, {
      action: 'policy.owner_cap_set',
      object: { kind: 'account', id: accountId },
      before: { ...toRecord(present), refundsRefill: before.refundsRefill, approvals: [...asked] },
      after: { ...toRecord(next), refundsRefill, approvals: [...approvals] },
    })
    return viewOwnerCap(
      {
        refundsRefill,
        day: { ...before.day, maxMicros: next.day },
        week: { ...before.week, maxMicros: next.week },
        month: { ...before.month, maxMicros: next.month },
      },
      approvals,
    )
  },
})

/** Mails everybody of the account, also the person who changed it: their session may be somebody else's. */
async function tellPeople(context: Context, accountId: string): Promise<void> {
  for (const { personId } of await listPeople(context.database, accountId))
    await sendSecurityNotice(context, { accountId: personId, notice: 'quorum_loosened', at: context.now })
}

function toMicros(cap: { readonly max: string } | null): bigint | null {
  return cap === null ? null : toUsdMicros(cap.max)
}

/** Caps as the request names them. */
function viewCaps({ day, week, month }: Caps) {
  const toCap = (micros: bigint | null) => (micros === null ? null : { max: formatUsd(micros) })
  return { dailyBudget: toCap(day), weeklyBudget: toCap(week), monthlyBudget: toCap(month) }
}

function toRecord({ day, week, month }: Caps) {
  return {
    dailyMaxMicros: day?.toString() ?? null,
    weeklyMaxMicros: week?.toString() ?? null,
    monthlyMaxMicros: month?.toString() ?? null,
  }
}
