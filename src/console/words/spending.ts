/** What agents spent over a period, added up by payee and by way of paying; and budgets that are nearly used up. Pure. */
import type { Agent, Movement } from '../../client/operations.ts'
import { addDecimals, compareDecimals, findShare, subtractDecimals } from './money.ts'

export interface Part {
  readonly name: string
  readonly usd: string
}

/** @property unpriced number of payments without a rate to dollars: they are in no sum. */
export interface Spending {
  readonly usd: string
  readonly payments: number
  readonly unpriced: number
  /** Largest first. */
  readonly byPayee: readonly Part[]
  readonly byCategory: readonly Part[]
}

/** Adds up what agents spent, less what came back of it in the same period. What a person pays is not in it. */
export function sumSpending(movements: readonly Movement[]): Spending {
  const spent = movements.filter(({ direction, agentId }) => direction === 'out' && agentId !== null)
  const back = new Map<string, string>()
  for (const { direction, refundOf, usd } of movements)
    if (direction === 'in' && refundOf !== null && usd !== null)
      back.set(refundOf.id, addDecimals(back.get(refundOf.id) ?? '0', usd))
  const payees = new Map<string, string>()
  const categories = new Map<string, string>()
  for (const { object, contact, counterparty, category, usd } of spent) {
    if (usd === null) continue
    const net = takeBack(back, object.id, usd)
    const payee = contact ?? counterparty ?? ''
    payees.set(payee, addDecimals(payees.get(payee) ?? '0', net))
    categories.set(category, addDecimals(categories.get(category) ?? '0', net))
  }
  return {
    usd: addDecimals('0', ...categories.values()),
    payments: new Set(spent.map(({ object }) => object.id)).size,
    unpriced: spent.filter(({ usd }) => usd === null).length,
    byPayee: sortParts(payees),
    byCategory: sortParts(categories),
  }
}

/** A payment may be booked in parts; what came back is taken from each until it is used up. */
function takeBack(back: Map<string, string>, id: string, usd: string): string {
  const returned = back.get(id) ?? '0'
  const taken = compareDecimals(returned, usd) > 0 ? usd : returned
  back.set(id, subtractDecimals(returned, taken))
  return subtractDecimals(usd, taken)
}

function sortParts(sums: ReadonlyMap<string, string>): readonly Part[] {
  return [...sums]
    .map(([name, usd]) => ({ name, usd }))
    .filter(({ usd }) => compareDecimals(usd, '0') > 0)
    .sort((one, other) => compareDecimals(other.usd, one.usd))
}

const LOW_PERCENT = 25

export interface LowBudget {
  readonly agent: Agent
  readonly span: string
  readonly used: string
  readonly left: string
}

/** Budgets of a week or longer with less than a quarter left, the lowest of each agent. Those of a day are new tomorrow. */
export function findLowBudgets(agents: readonly Agent[]): readonly LowBudget[] {
  return agents.flatMap((agent) => {
    if (agent.status !== 'active') return []
    const { week, month, total } = agent.usage
    const low = [
      { span: 'this week', ...week },
      { span: 'this month', ...month },
      { span: 'in all', ...total },
    ]
      .flatMap(({ span, used, remaining }) =>
        remaining === null
          ? []
          : [{ span, used, left: remaining, share: findShare(remaining, addDecimals(used, remaining)) }],
      )
      .filter(({ share }) => share < LOW_PERCENT)
      .sort((one, other) => one.share - other.share)
    const [lowest] = low
    return lowest === undefined ? [] : [{ agent, span: lowest.span, used: lowest.used, left: lowest.left }]
  })
}
