/**
 * Detects policy changes that could allow what the previous policy did not. Tightening takes effect at once; loosening
 * is privileged. A change that cannot be compared member by member counts as loosening.
 */
import { type Directions, looserMembers } from './directions.ts'
import type { Policy } from './policy.ts'
import type { TimeWindow } from './time-windows.ts'

const budget = { max: 'higher', maxCount: 'higher' } as const
const lists = { allow: 'wider', deny: 'narrower' } as const

/** The direction in which each member of a spend policy loosens. */
export const policyDirections: Directions<Policy> = {
  currency: 'never',
  perTransaction: { max: 'higher' },
  dailyBudget: budget,
  weeklyBudget: budget,
  monthlyBudget: budget,
  totalBudget: budget,
  // Another span beside another count has no order.
  repeatLimit: { count: 'higher', perSec: 'lower' },
  categories: { allow: 'wider' },
  counterparties: { ...lists, newPayeeCooldownSec: 'lower' },
  // Looking at more purchases may deny a seller, or make it count as unknown and pass: no change of `of` is surely tighter.
  sellers: { ...lists, minDelivered: { of: changes, ratio: lowersRatio }, unknown: admitsMore },
  assets: 'wider',
  chains: 'wider',
  mcc: lists,
  symbols: lists,
  timeWindows: opensTimes,
  // The owner has longer to approve, and nothing is approved without them.
  approval: { above: 'higher', ttlSec: 'never' },
  notBefore: 'earlier',
  expiresAt: 'later',
}

/** Lists the members of a policy that are looser after the change. A key without a policy may spend nothing. */
export function loosenings(before: Policy | null, after: Policy | null): readonly string[] {
  if (after === null) return []
  if (before === null) return ['policy']
  return looserMembers(policyDirections, before, after)
}

/** True if spends are allowed at times at which they were not. */
function opensTimes(
  before: readonly TimeWindow[] | undefined,
  after: readonly TimeWindow[] | undefined,
): boolean {
  if (before === undefined) return false
  return after === undefined || after.some((window) => !before.some((open) => liesWithin(window, open)))
}

/** True if a window lies within another: no other days and, in the same time zone, no other hours. */
function liesWithin(window: TimeWindow, open: TimeWindow): boolean {
  const isSame = window.start === open.start && window.end === open.end
  const areDays = [window, open].every(({ start, end }) => start < end)
  const isWithin = isSame || (areDays && window.start >= open.start && window.end <= open.end)
  return window.tz === open.tz && isWithin && window.days.every((day) => open.days.includes(day))
}

type Sellers = NonNullable<Policy['sellers']>

function changes(before: number | undefined, after: number | undefined): boolean {
  return before !== undefined && after !== before
}

function lowersRatio(before: number | undefined, after: number | undefined): boolean {
  return before !== undefined && (after === undefined || after < before)
}

const strictness = ['allow', 'ask', 'deny'] as const

/** True if unknown sellers could be paid more easily. */
function admitsMore(before: Sellers['unknown'], after: Sellers['unknown']): boolean {
  return strictness.indexOf(after ?? 'allow') < strictness.indexOf(before ?? 'allow')
}
