import { z } from 'zod'
import type { PeriodUsage } from '../../../policies/budget.ts'
import { storedPolicy } from '../../../policies/policy.ts'
import { formatUsd } from '../../../policies/usd.ts'
import { pathUsageView, viewPathUsage } from '../../../src/books/spending/delegation-view.ts'
import { pickUsage, readSetAsides, readUsages } from '../../../src/books/spending/usage.ts'
import { type AccessKey, shownStatus } from '../../../src/core/base/principal.ts'
import { Failure } from '../../../src/core/failures/failure.ts'
import { requireCaller } from '../../../src/kernel/context.ts'
import { defineTool } from '../../../src/kernel/tool.ts'
import { listTree } from '../../../src/people/identity/keys/delegations.ts'

/** A key with those below it. */
interface TreeNode {
  agentId: string
  name: string
  status: ReturnType<typeof shownStatus>
  task: string | null
  earmarked: string | null
  setAside: string
  expiresAt: string | null
  usage: z.input<typeof pathUsageView>
  children: Record<string, unknown>[]
}

const members = {
  agentId: z.string().describe('`key_…`'),
  name: z.string().describe('Name that it was given.'),
  status: z
    .enum(['active', 'paused', 'expired', 'revoked'])
    .describe('`paused` also while a key above it is.'),
  task: z.string().nullable().describe('Label of its spends.'),
  earmarked: z.string().nullable().describe('USD set aside for it above; null: nothing.'),
  setAside: z.string().describe('USD that it sets aside for keys below it, and that they have not spent.'),
  expiresAt: z.string().nullable().describe('When it ends, ISO 8601 UTC; null: never.'),
  usage: pathUsageView.describe('Its usage, and that of all keys below it.'),
}
export default defineTool({
  name: 'agents.keys.tree',
  title: 'Tree of a key',
  summary: 'Read a key and all keys below it, with what each has spent.',
  description: 'A key reads itself and what is below it.',
  route: 'GET /api/agents/keys/{id}/tree',
  who: 'account',
  scopes: ['agents:delegate'],
  mcp: false,
  effect: 'read',
  input: z.strictObject({ id: z.string().max(64).describe('`agentId`: `key_…`') }),
  output: z.strictObject({
    ...members,
    children: z
      .array(z.looseObject({}))
      .describe('Keys that it delegated to, oldest first, ended ones too: each with the same members.'),
  }),
  failures: ['not_found'],
  example: { id: 'key_01h455vb4pex5vsknk084sn02q' },
  run: async (context, { id }) => {
    const { database, now } = context
    const calendar = context.onCalendar(now)
    const caller = requireCaller(context)
    const keys = await listTree(database, { accountId: caller.account.id, id })
    const root = keys.find((key) => key.id === id)
    const mayRead =
      caller.kind === 'session' ||
      id === caller.key.id ||
      root?.delegation?.path.some((ancestor) => ancestor.id === caller.key.id) === true
    if (root === undefined || !mayRead) throw new Failure('not_found', 'You have no such agent.')
    const usages = await readUsages(
      database,
      keys.map((key) => key.id),
      calendar,
    )
    const below = new Map<string, AccessKey[]>()
    for (const key of keys) {
      const parent = key.delegation?.path.at(-1)?.id
      if (parent === undefined) continue
      const siblings = below.get(parent)
      if (siblings === undefined) below.set(parent, [key])
      else siblings.push(key)
    }
    // Only a key with others below it sets anything aside.
    const setAside = await readSetAsides(database, { holderIds: [...below.keys()], at: calendar })
    return buildTree(root, { below, usages, setAside, now, calendar })
  },
})

interface TreeFacts {
  /** Children by their parent, oldest first. */
  readonly below: ReadonlyMap<string, readonly AccessKey[]>
  readonly usages: ReadonlyMap<string, PeriodUsage>
  readonly setAside: ReadonlyMap<string, bigint>
  readonly now: Date
  readonly calendar: Date
}

function buildTree(key: AccessKey, facts: TreeFacts): TreeNode {
  const policy = storedPolicy.nullable().parse(key.policy ?? null)
  const earmark = key.delegation?.earmarkMicros ?? null
  const usage = facts.usages.get(key.id) ?? pickUsage([])
  return {
    agentId: key.id,
    name: key.name,
    status: shownStatus(key, facts.now),
    task: key.delegation?.task ?? null,
    earmarked: earmark === null ? null : formatUsd(earmark),
    setAside: formatUsd(facts.setAside.get(key.id) ?? 0n),
    expiresAt: key.expiresAt?.toISOString() ?? null,
    usage: viewPathUsage(usage, policy, facts.calendar),
    children: (facts.below.get(key.id) ?? []).map((child) => ({ ...buildTree(child, facts) })),
  }
}
