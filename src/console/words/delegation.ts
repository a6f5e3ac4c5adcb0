/** Delegations: the tree below an agent, what each key of it still has, and what ends with it. Pure. */
import type { Agent, AgentsKeysTreeResponse } from '../../client/operations.ts'
import { addDecimals, compareDecimals, subtractDecimals } from './money.ts'

/** A key with those below it. */
export type RunNode = Omit<AgentsKeysTreeResponse, 'children'> & { readonly children: readonly RunNode[] }

export function readTree(tree: AgentsKeysTreeResponse): RunNode {
  // The answer's schema leaves children open; each has the members of the root.
  return tree as unknown as RunNode
}

export type RunState = 'running' | 'paused' | 'ended' | 'expired'

/** A key, or a key of a tree, which says by itself that it has expired. */
type Dated = Pick<Agent, 'expiresAt'> & { readonly status: Agent['status'] | 'expired' }

/** State of a key. One that expires while it is shown keeps its status, and spends nothing. */
export function nameState({ status, expiresAt }: Dated, now: Date): RunState {
  if (status === 'revoked') return 'ended'
  if (expiresAt !== null && Date.parse(expiresAt) <= now.getTime()) return 'expired'
  return status === 'paused' ? 'paused' : 'running'
}

/** True while it can spend, or could if it were not paused. */
export function isLiving(key: Dated, now: Date): boolean {
  const state = nameState(key, now)
  return state === 'running' || state === 'paused'
}

/** Counts the living keys below one. */
export function countBelow({ children }: RunNode, now: Date): number {
  return children.reduce((sum, child) => sum + (isLiving(child, now) ? 1 : 0) + countBelow(child, now), 0)
}

/** The next moment at which a key of the tree expires; null if none does. */
export function findNextEnd({ expiresAt, children }: RunNode, now: Date): number | null {
  const ends = [expiresAt === null ? Number.NaN : Date.parse(expiresAt)]
  ends.push(...children.map((child) => findNextEnd(child, now) ?? Number.NaN))
  const ahead = ends.filter((end) => end > now.getTime())
  return ahead.length === 0 ? null : Math.min(...ahead)
}

/** USD that those above get back when a key ends: what is left of its earmark, or of those below it if it has none. */
export function computeReturn({ earmarked, setAside, usage }: RunNode): string {
  return earmarked === null ? setAside : atLeastNothing(subtractDecimals(earmarked, usage.total.used))
}

/** Budget of a key that tells most: of its life, otherwise of today. @property left less what is set aside for others */
export interface RunBudget {
  readonly used: string
  readonly aside: string
  readonly left: string
  /** Null without a limit. */
  readonly limit: string | null
  readonly span: 'in total' | 'today'
}

export function readBudget({ usage, setAside }: RunNode): RunBudget {
  const isLife = usage.total.remaining !== null || usage.remaining === null
  const { used, remaining } = isLife ? usage.total : usage
  return {
    used,
    ...splitLeft(remaining ?? '0', setAside),
    limit: remaining === null ? null : addDecimals(used, remaining),
    span: isLife ? 'in total' : 'today',
  }
}

/** Splits what remains into the part that is set aside for keys below, and the part that the key itself has left. */
export function splitLeft(
  remaining: string,
  setAside: string,
): { readonly left: string; readonly aside: string } {
  const aside = compareDecimals(setAside, remaining) > 0 ? remaining : setAside
  return { left: subtractDecimals(remaining, aside), aside }
}

function atLeastNothing(amount: string): string {
  return compareDecimals(amount, '0') < 0 ? '0' : amount
}

/** Periods of the rules that limit amounts. */
const spans: Readonly<Record<string, string>> = {
  daily_budget: 'today',
  weekly_budget: 'this week',
  monthly_budget: 'this month',
  total_budget: 'in total',
}

/** What is left of a rule on the path of a delegated key. */
export interface PathLimit {
  readonly rule: string
  readonly remaining: string
  readonly agentId: string
}

/** The limit that a delegated key meets first; undefined without any. @property usd nothing when no payment is left */
export function findLeast(
  limits: readonly PathLimit[],
): { readonly usd: string; readonly agentId: string; readonly span: string } | undefined {
  const counted = limits.find(({ rule, remaining }) => rule.endsWith('_count') && remaining === '0')
  if (counted !== undefined)
    return { usd: '0', agentId: counted.agentId, span: spans[counted.rule.replace('count', 'budget')] ?? '' }
  const least = limits
    .filter(({ rule }) => spans[rule] !== undefined)
    .reduce<PathLimit | undefined>(
      (first, one) =>
        first === undefined || compareDecimals(one.remaining, first.remaining) < 0 ? one : first,
      undefined,
    )
  return least && { usd: least.remaining, agentId: least.agentId, span: spans[least.rule] ?? '' }
}

/** An agent with the agents below it. */
export interface AgentGroup {
  readonly agent: Agent
  readonly children: readonly AgentGroup[]
}

/** Groups agents under the nearest agent above each that is in the list, in the order of the list. */
export function groupAgents(agents: readonly Agent[]): readonly AgentGroup[] {
  const known = new Set(agents.map(({ agentId }) => agentId))
  const below = new Map<string | undefined, Agent[]>()
  for (const agent of agents) {
    const above = agent.path.findLast(({ agentId }) => known.has(agentId))?.agentId
    below.set(above, [...(below.get(above) ?? []), agent])
  }
  const build = (above: string | undefined): readonly AgentGroup[] =>
    (below.get(above) ?? []).map((agent) => ({ agent, children: build(agent.agentId) }))
  return build(undefined)
}

/** Counts all agents of groups. */
export function countAgents(groups: readonly AgentGroup[]): number {
  return groups.reduce((sum, { children }) => sum + 1 + countAgents(children), 0)
}
