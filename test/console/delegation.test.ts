/** Trees of delegations: what is left, what ends with a key, and whose limit is met first. */
import { describe, expect, it } from 'vitest'
import type { Agent } from '../../src/client/operations.ts'
import {
  computeReturn,
  countAgents,
  countBelow,
  findLeast,
  findNextEnd,
  groupAgents,
  nameState,
  type RunNode,
  readBudget,
  splitLeft,
} from '../../src/console/words/delegation.ts'

const now = new Date('2026-11-20T12:00:00.000Z')
const later = '2026-11-20T13:00:00.000Z'
const earlier = '2026-11-20T11:00:00.000Z'

const buildNode = (given: Partial<RunNode> = {}): RunNode => ({
  agentId: 'key_1',
  name: 'Helper',
  status: 'active',
  task: null,
  earmarked: null,
  setAside: '0',
  expiresAt: later,
  usage: { used: '1', remaining: '4', count: 1, total: { used: '3', remaining: '5', count: 2 } },
  children: [],
  ...given,
})

describe('a key of a run', () => {
  it('says that a key is ended or expired before anything else', () => {
    expect(nameState({ status: 'active', expiresAt: later }, now)).toBe('running')
    expect(nameState({ status: 'active', expiresAt: null }, now)).toBe('running')
    expect(nameState({ status: 'paused', expiresAt: later }, now)).toBe('paused')
    expect(nameState({ status: 'paused', expiresAt: earlier }, now)).toBe('expired')
    expect(nameState({ status: 'revoked', expiresAt: earlier }, now)).toBe('ended')
  })

  it('shows the budget of a key’s life, otherwise that of today', () => {
    expect(readBudget(buildNode({ setAside: '2' }))).toEqual({
      used: '3',
      left: '3',
      aside: '2',
      limit: '8',
      span: 'in total',
    })
    const usage = { used: '1', remaining: '4', count: 1, total: { used: '9', remaining: null, count: 2 } }
    expect(readBudget(buildNode({ usage }))).toMatchObject({ used: '1', limit: '5', span: 'today' })
    const unlimited = { ...usage, remaining: null }
    expect(readBudget(buildNode({ usage: unlimited }))).toMatchObject({ used: '9', limit: null })
  })

  it('never sets aside more than what is left', () => {
    expect(splitLeft('5', '2.5')).toEqual({ left: '2.5', aside: '2.5' })
    expect(splitLeft('1', '2.5')).toEqual({ left: '0', aside: '1' })
  })

  it('takes the living keys below it along, and returns what is left of its earmark', () => {
    const child = buildNode({ agentId: 'key_2', children: [buildNode({ agentId: 'key_3' })] })
    const over = buildNode({ agentId: 'key_4', status: 'revoked' })
    expect(countBelow(buildNode({ children: [child, over] }), now)).toBe(2)
    expect(computeReturn(buildNode({ earmarked: '8' }))).toBe('5')
    expect(computeReturn(buildNode({ earmarked: '2' }))).toBe('0')
    expect(computeReturn(buildNode({ setAside: '1.5' }))).toBe('1.5')
  })

  it('is read again when the next key of its tree expires', () => {
    const child = buildNode({ expiresAt: '2026-11-20T12:30:00.000Z' })
    const over = buildNode({ expiresAt: earlier })
    const tree = buildNode({ expiresAt: null, children: [child, over] })
    expect(findNextEnd(tree, now)).toBe(Date.parse('2026-11-20T12:30:00.000Z'))
    expect(findNextEnd(buildNode({ expiresAt: null }), now)).toBeNull()
  })
})

describe('the least on a path', () => {
  it('is the smallest amount, and whose it is', () => {
    const limits = [
      { rule: 'daily_budget', remaining: '2', agentId: 'key_root' },
      { rule: 'total_budget', remaining: '10', agentId: 'key_child' },
      { rule: 'total_count', remaining: '1', agentId: 'key_child' },
    ]
    expect(findLeast(limits)).toEqual({ usd: '2', agentId: 'key_root', span: 'today' })
    expect(findLeast([])).toBeUndefined()
  })

  it('is nothing when no payment is left', () => {
    const limits = [
      { rule: 'daily_budget', remaining: '2', agentId: 'key_root' },
      { rule: 'total_count', remaining: '0', agentId: 'key_child' },
    ]
    expect(findLeast(limits)).toEqual({ usd: '0', agentId: 'key_child', span: 'in total' })
  })
})

describe('a list of agents', () => {
  const name = (agentId: string, ...above: readonly string[]) =>
    ({ agentId, path: above.map((id) => ({ agentId: id, name: id })) }) as Agent // What grouping reads.

  it('has each under the nearest one above it that is listed', () => {
    const groups = groupAgents([name('c', 'a', 'b'), name('d', 'x'), name('e', 'a'), name('a')])
    expect(groups.map(({ agent }) => agent.agentId)).toEqual(['d', 'a'])
    expect(groups[1]?.children.map(({ agent }) => agent.agentId)).toEqual(['c', 'e'])
    expect(countAgents(groups)).toBe(4)
  })
})
