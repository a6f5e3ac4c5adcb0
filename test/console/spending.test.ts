/** What all agents spent, by payee and category, and which budgets run out soon. */
import { describe, expect, it } from 'vitest'
import type { Agent, Movement, OwnerCap } from '../../src/client/operations.ts'
import { findLowBudgets, nameMonth, type Share, sumSpending } from '../../src/console/words/spending.ts'

const movement = (changes: Partial<Movement>): Movement => ({
  id: 'one',
  at: '2026-11-20T09:00:00.000Z',
  direction: 'out',
  amount: '1',
  asset: 'USDC',
  usd: '1',
  rate: '1',
  fee: '0',
  counterparty: `0x${'1'.repeat(40)}`,
  contact: null,
  memo: null,
  task: null,
  agentId: 'key_1',
  category: 'transfer',
  object: { kind: 'transfer', id: 'tx_1' },
  refundOf: null,
  transactionHash: null,
  decisionId: null,
  ...changes,
})

const shares = (of: readonly Share[]) => of.map(({ name, usd }) => `${name} ${Number(usd)}`)

describe('what agents spent', () => {
  it('sums what agents spent by payee and category, without what people paid and what came in', () => {
    const spent = sumSpending([
      movement({ contact: 'Alice', usd: '2.50' }),
      movement({ contact: 'Alice', usd: '0.50' }),
      movement({ counterparty: 'https://api.example', category: 'x402', usd: '4' }),
      movement({ agentId: null, usd: '100' }),
      movement({ direction: 'in', agentId: null, usd: '900' }),
      movement({ usd: null }),
    ])
    expect(spent).toMatchObject({ usd: '7.00', count: 4, unpriced: 1 })
    expect(shares(spent.payees)).toEqual(['api.example 4', 'Alice 3'])
    expect(shares(spent.categories)).toEqual(['Purchases, x402 4', 'Transfers 3'])
  })

  it('takes off what came back of an agent’s payment', () => {
    const object = { kind: 'purchase', id: 'buy_1' }
    const spent = sumSpending([
      movement({ object, category: 'x402', counterparty: 'https://a.example', usd: '3' }),
      movement({ direction: 'in', agentId: null, object, refundOf: object, usd: '1' }),
      movement({ direction: 'in', agentId: null, refundOf: { kind: 'purchase', id: 'buy_0' }, usd: '50' }),
    ])
    expect(shares(spent.payees)).toEqual(['a.example 2'])
  })

  it('leaves out conversions, which pay nobody', () => {
    const object = { kind: 'swap', id: 'swp_1' }
    expect(sumSpending([movement({ object, category: 'swap', usd: '30' })])).toMatchObject({
      usd: '0',
      count: 0,
    })
  })

  it('names the five largest payees and sums up the others', () => {
    const spent = sumSpending(
      Array.from({ length: 9 }, (_, index) => movement({ contact: `P${index}`, usd: `${index + 1}` })),
    )
    expect(shares(spent.payees)).toEqual(['P8 9', 'P7 8', 'P6 7', 'P5 6', 'P4 5', '4 others 10'])
  })
})

describe('budgets that run out soon', () => {
  const resetsAt = '2026-11-29T00:00:00.000Z'
  const part = (used: string, remaining: string | null) => ({ used, remaining, count: 1, resetsAt })
  const agent = (changes: object) =>
    ({
      agentId: 'key_1',
      name: 'Bot',
      status: 'active',
      usage: {
        ...part('79', '21'),
        week: part('95', '5'),
        month: part('9', null),
        total: { used: '10', remaining: '0', count: 1 },
      },
      ...changes,
    }) as unknown as Agent

  it('lists budgets of which four fifths are used, the fullest first', () => {
    const cap = { ...part('80', '20'), week: part('1', null), month: part('1', '99') } as unknown as OwnerCap
    expect(findLowBudgets([agent({}), agent({ agentId: 'key_2', status: 'revoked' })], cap)).toMatchObject([
      { agentId: 'key_1', period: 'total', left: '0', resetsAt: null },
      { agentId: 'key_1', period: 'week', left: '5', used: 95, resetsAt },
      { agentId: null, period: 'day', left: '20', used: 80 },
    ])
    expect(findLowBudgets([], undefined)).toEqual([])
  })
})

it('names months across the turn of the year', () => {
  const now = new Date('2027-01-31T23:00:00Z')
  expect([nameMonth(now, 0), nameMonth(now, 1)]).toEqual(['2027-01', '2026-12'])
})
