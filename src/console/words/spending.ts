/** What all agents spent in a month, by payee and by category, and the budgets that run out soon. Pure. */
import type { Agent, Movement, OwnerCap } from '../../client/operations.ts'
import { addDecimals, compareDecimals, findShare, subtractDecimals } from './money.ts'
import { namePayee } from './names.ts'
import { nameCategory } from './policy.ts'

/** Payees and categories that are shown; the others are summed up. */
const SHOWN = 5
/** Percent of a budget from which it runs out soon. */
const SOON = 80

export interface Share {
  readonly name: string
  readonly usd: string
}

/** @property unpriced payments without a rate, which are in no sum. */
export interface Spending {
  readonly usd: string
  readonly count: number
  readonly unpriced: number
  readonly payees: readonly Share[]
  readonly categories: readonly Share[]
}

/** Sums up what agents paid. What came back of it in the same month is taken off; a conversion within the wallet pays nobody. */
export function sumSpending(movements: readonly Movement[]): Spending {
  const paid = movements.filter(
    ({ direction, agentId, object }) => direction === 'out' && agentId !== null && object.kind !== 'swap',
  )
  const payments = new Map(paid.map((movement) => [nameObject(movement.object), movement]))
  const payees = new Map<string, string>()
  const categories = new Map<string, string>()
  const add = (movement: Movement, usd: string, change: typeof addDecimals | typeof subtractDecimals) => {
    for (const [sums, name] of [
      [payees, movement.contact ?? namePayee(movement.counterparty ?? nameCategory(movement.category))],
      [categories, nameCategory(movement.category)],
    ] as const)
      sums.set(name, change(sums.get(name) ?? '0', usd))
  }
  for (const movement of paid) if (movement.usd !== null) add(movement, movement.usd, addDecimals)
  for (const { direction, refundOf, usd } of movements) {
    const payment = refundOf === null ? undefined : payments.get(nameObject(refundOf))
    if (direction === 'in' && payment !== undefined && usd !== null) add(payment, usd, subtractDecimals)
  }
  return {
    usd: addDecimals('0', ...categories.values()),
    count: paid.length,
    unpriced: paid.filter(({ usd }) => usd === null).length,
    payees: rank(payees),
    categories: rank(categories),
  }
}

const nameObject = ({ kind, id }: { readonly kind: string; readonly id: string }) => `${kind} ${id}`

/** The largest first, and the rest as one. */
function rank(sums: ReadonlyMap<string, string>): readonly Share[] {
  const sorted = [...sums]
    .filter(([, usd]) => compareDecimals(usd, '0') > 0)
    .sort(([, one], [, other]) => compareDecimals(other, one))
    .map(([name, usd]) => ({ name, usd }))
  if (sorted.length <= SHOWN + 1) return sorted
  const rest = sorted.slice(SHOWN)
  return [
    ...sorted.slice(0, SHOWN),
    { name: `${rest.length} others`, usd: addDecimals('0', ...rest.map(({ usd }) => usd)) },
  ]
}

/** @property agentId null: the cap of all agents. @property used percent. @property resetsAt null: never. */
export interface LowBudget {
  readonly agentId: string | null
  readonly name: string | null
  readonly period: 'day' | 'week' | 'month' | 'total'
  readonly left: string
  readonly used: number
  readonly resetsAt: string | null
}

interface Counted {
  readonly used: string
  readonly remaining: string | null
  readonly resetsAt?: string
}

/** Budgets of which most is used up, the fullest first. */
export function findLowBudgets(agents: readonly Agent[], cap: OwnerCap | undefined): readonly LowBudget[] {
  const find = (
    owner: Pick<LowBudget, 'agentId' | 'name'>,
    budgets: Readonly<Partial<Record<LowBudget['period'], Counted>>>,
  ) =>
    Object.entries(budgets).flatMap(([period, { used, remaining, resetsAt = null }]) => {
      if (remaining === null) return []
      const share = findShare(used, addDecimals(used, remaining))
      const low = { ...owner, left: remaining, used: share, resetsAt }
      return share < SOON ? [] : [{ ...low, period: period as LowBudget['period'] }]
    })
  return [
    ...(cap === undefined
      ? []
      : find({ agentId: null, name: null }, { day: cap, week: cap.week, month: cap.month })),
    ...agents
      .filter(({ status }) => status === 'active')
      .flatMap(({ agentId, name, usage }) =>
        find({ agentId, name }, { day: usage, week: usage.week, month: usage.month, total: usage.total }),
      ),
  ].sort((one, other) => other.used - one.used)
}

/** `2026-11` of the month that is so many months before. */
export function nameMonth(now: Date, before: number): string {
  return new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() - before, 1)).toISOString().slice(0, 7)
}
