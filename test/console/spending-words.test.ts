/** Sums of what agents spent, and budgets that run out. */
import { describe, expect, it } from 'vitest'
import type { Agent, Movement } from '../../src/client/operations.ts'
import { findLowBudgets, sumSpending } from '../../src/console/words/spending.ts'

const movement = (facts: Partial<Movement>): Movement => ({
  id: 'ltx_1',
  at: '2026-11-01T00:00:00.000Z',
  direction: 'out',
  amount: '1',
  asset: 'USDC',
  usd: '1.00',
  rate: '1',
  fee: '0',
  counterparty: 'shop.example',
  contact: null,
  memo: null,
  task: null,
  agentId: 'key_1',
  category: 'x402',
  object: { kind: 'purchase', id: 'buy_1' },
  refundOf: null,
  transactionHash: null,
  ...facts,
})

describe('what agents spent', () => {
  it('is added up by payee and by way of paying, largest first, without what people paid', () => {
    const spending = sumSpending([
      movement({ usd: '1.25' }),
      movement({ usd: '0.50', object: { kind: 'purchase', id: 'buy_2' } }),
      movement({
        usd: '9',
        category: 'transfer',
        counterparty: '0x1',
        contact: 'Alice',
        object: { kind: 'transfer', id: 'tx_1' },
      }),
      movement({ usd: '100', agentId: null, object: { kind: 'transfer', id: 'tx_2' } }),
      movement({ usd: '100', direction: 'in', agentId: null, object: { kind: 'deposit', id: 'dep_1' } }),
    ])
    expect(spending).toEqual({
      usd: '10.75',
      payments: 3,
      unpriced: 0,
      byPayee: [
        { name: 'Alice', usd: '9' },
        { name: 'shop.example', usd: '1.75' },
      ],
      byCategory: [
        { name: 'transfer', usd: '9' },
        { name: 'x402', usd: '1.75' },
      ],
    })
  })

  it('is less what came back of it, and never below nothing', () => {
    const refund = (usd: string, id: string) =>
      movement({
        direction: 'in',
        usd,
        agentId: null,
        object: { kind: 'refund', id: `ref_${id}` },
        refundOf: { kind: 'purchase', id },
      })
    const spending = sumSpending([
      movement({ usd: '2' }),
      movement({ usd: '3' }),
      refund('4', 'buy_1'),
      // Of a payment of another month.
      refund('50', 'buy_0'),
    ])
    expect([spending.usd, spending.payments]).toEqual(['1', 1])
    expect(sumSpending([movement({ usd: '2' }), refund('5', 'buy_1')]).byPayee).toEqual([])
  })

  it('tells how many payments have no rate', () => {
    expect(sumSpending([movement({ usd: null })])).toMatchObject({ usd: '0', payments: 1, unpriced: 1 })
  })
})

describe('budgets that run out', () => {
  const span = (used: string, remaining: string | null) => ({ used, remaining, count: 1, resetsAt: '' })
  const agent = (usage: object, status = 'active') =>
    ({ agentId: 'key_1', status, usage: { week: span('0', null), ...usage } }) as unknown as Agent

  it('are those of a week or longer with less than a quarter left, the lowest of each agent', () => {
    const low = agent({ month: span('90', '10'), total: span('99', '1') })
    expect(findLowBudgets([low])).toEqual([{ agent: low, span: 'in all', used: '99', left: '1' }])
    expect(findLowBudgets([agent({ month: span('75', '25'), total: span('0', null) })])).toEqual([])
    expect(findLowBudgets([agent({ month: span('90', '10'), total: span('0', null) }, 'paused')])).toEqual([])
  })
})
