/**
 * Detects policy changes that could allow what the previous policy did not. Tightening takes effect at once; loosening
 * is privileged. A change that cannot be compared member by member counts as loosening.
 */
import type { Policy } from './policy.ts'
import type { TimeWindow } from './time-windows.ts'
import { usdMicrosOf } from './usd.ts'

/** An allow list; undefined allows everything. */
type Allowed = readonly unknown[] | undefined

/** Lists the members of a policy that are looser after the change. A key without a policy may spend nothing. */
export function loosenings(before: Policy | null, after: Policy | null): readonly string[] {
  if (after === null) return []
  if (before === null) return ['policy']
  const checks: Readonly<Record<string, boolean>> = {
    perTransaction: usdMicrosOf(after.perTransaction.max) > usdMicrosOf(before.perTransaction.max),
    dailyBudget: isLooserBudget(before.dailyBudget, after.dailyBudget),
    weeklyBudget: isLooserBudget(before.weeklyBudget, after.weeklyBudget),
    monthlyBudget: isLooserBudget(before.monthlyBudget, after.monthlyBudget),
    categories: widens(before.categories.allow, after.categories.allow),
    counterparties:
      widensLists(before.counterparties, after.counterparties) ||
      fallsShort(after.counterparties?.newPayeeCooldownSec, before.counterparties?.newPayeeCooldownSec),
    assets: widens(before.assets, after.assets),
    chains: widens(before.chains, after.chains),
    mcc: widensLists(before.mcc, after.mcc),
    symbols: widensLists(before.symbols, after.symbols),
    timeWindows:
      before.timeWindows !== undefined &&
      (after.timeWindows === undefined ||
        after.timeWindows.some((window) => !before.timeWindows?.some((open) => liesWithin(window, open)))),
    approval:
      before.approval !== undefined &&
      (after.approval === undefined ||
        usdMicrosOf(after.approval.above) > usdMicrosOf(before.approval.above)),
    notBefore: timeOf(after.notBefore, -Infinity) < timeOf(before.notBefore, -Infinity),
    expiresAt: timeOf(after.expiresAt, Infinity) > timeOf(before.expiresAt, Infinity),
  }
  return Object.entries(checks).flatMap(([member, isLooser]) => (isLooser ? [member] : []))
}

/** True if a budget rose or was removed, in value or in number. */
function isLooserBudget(before: Policy['weeklyBudget'], after: Policy['weeklyBudget']): boolean {
  if (before === undefined) return false
  return (
    after === undefined ||
    usdMicrosOf(after.max) > usdMicrosOf(before.max) ||
    exceeds(after.maxCount, before.maxCount)
  )
}

/** True if a count rose, or its limit was removed. */
function exceeds(after: number | undefined, before: number | undefined): boolean {
  return before !== undefined && (after === undefined || after > before)
}

/** True if a wait became shorter, or was removed. */
function fallsShort(after: number | undefined, before: number | undefined): boolean {
  return before !== undefined && (after === undefined || after < before)
}

function widens(before: Allowed, after: Allowed): boolean {
  if (before === undefined) return false
  return after === undefined || after.some((entry) => !before.includes(entry))
}

interface Lists {
  readonly allow?: readonly string[] | undefined
  readonly deny?: readonly string[] | undefined
}

function widensLists(before: Lists = {}, after: Lists = {}): boolean {
  const lifted = (before.deny ?? []).some((entry) => !(after.deny ?? []).includes(entry))
  const emptied = (before.deny ?? []).length > 0 && (after.deny ?? []).length === 0
  return widens(before.allow, after.allow) || lifted || emptied
}

/** True if a window lies within another: no other days and, in the same time zone, no other hours. */
function liesWithin(window: TimeWindow, open: TimeWindow): boolean {
  const isSame = window.start === open.start && window.end === open.end
  const areDays = [window, open].every(({ start, end }) => start < end)
  const isWithin = isSame || (areDays && window.start >= open.start && window.end <= open.end)
  return window.tz === open.tz && isWithin && window.days.every((day) => open.days.includes(day))
}

function timeOf(text: string | undefined, none: number): number {
  return text === undefined ? none : Date.parse(text)
}
