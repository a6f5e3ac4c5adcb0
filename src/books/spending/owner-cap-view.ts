/** The owner's caps, as shown to clients. */
import { z } from 'zod'
import { formatUsd } from '../../../policies/usd.ts'
import type { OwnerCap, PeriodCap } from './owner-cap.ts'

const cap = (period: string) =>
  z
    .strictObject({ max: z.string().describe('USD, a decimal string.') })
    .nullable()
    .describe(
      `Maximum that all keys together may spend per ${period}; null: only the caps of the keys apply.`,
    )

const use = (period: string) => ({
  used: z.string().describe(`USD that all keys spent or hold ${period}, as a decimal string.`),
  remaining: z.string().nullable().describe(`USD left ${period}, as a decimal string; null without a cap.`),
  resetsAt: z.string().describe('When it resets, ISO 8601 UTC.'),
})

export const ownerCapView = z.strictObject({
  dailyBudget: cap('UTC day'),
  weeklyBudget: cap('ISO week (UTC)'),
  monthlyBudget: cap('UTC month'),
  refundsRefill: z
    .boolean()
    .describe('True: money that comes back returns to the budgets that it was spent from.'),
  approvals: z
    .array(
      z.strictObject({
        above: z.string().describe('USD, a decimal string.'),
        count: z.int().describe('Different people who must agree above it.'),
      }),
    )
    .describe('How many people must agree to a payment, by amount.'),
  ...use('today'),
  week: z.strictObject(use('this week')).describe('From Monday, UTC.'),
  month: z.strictObject(use('this month')).describe('Calendar month, UTC.'),
})
ownerCapView.register(z.globalRegistry, { id: 'OwnerCap' })

export function viewOwnerCap(
  { day, week, month, refundsRefill }: OwnerCap,
  approvals: readonly { readonly above: string; readonly count: number }[],
): z.input<typeof ownerCapView> {
  return {
    dailyBudget: viewCap(day),
    weeklyBudget: viewCap(week),
    monthlyBudget: viewCap(month),
    refundsRefill,
    approvals: [...approvals],
    ...viewUse(day),
    week: viewUse(week),
    month: viewUse(month),
  }
}

function viewCap({ maxMicros }: PeriodCap) {
  return maxMicros === null ? null : { max: formatUsd(maxMicros) }
}

function viewUse({ maxMicros, usedMicros, resetsAt }: PeriodCap) {
  const left = maxMicros === null ? null : maxMicros - usedMicros
  return {
    used: formatUsd(usedMicros),
    remaining: left === null ? null : formatUsd(left > 0n ? left : 0n),
    resetsAt: resetsAt.toISOString(),
  }
}
