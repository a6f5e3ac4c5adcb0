import { describe, expect, it } from 'vitest'
import { spendPolicy } from '../../policies/policy.ts'
import { type PastSpend, replay } from '../../policies/replay.ts'

const payee = `0x${'Ab'.repeat(20)}`
const at = (time: string) => new Date(`2026-11-${time}:00Z`)
const policyWith = (parts: object) =>
  spendPolicy.parse({
    perTransaction: { max: '10' },
    dailyBudget: { max: '10' },
    categories: { allow: ['transfer'] },
    ...parts,
  })
/** An allowed spend of whole dollars. */
const buildSpend = (dollars: number | null, when: string, changes: Partial<PastSpend> = {}): PastSpend => ({
  id: `dec_${when}`,
  at: at(when),
  spend: {
    category: 'transfer',
    asset: 'USDC',
    usdMicros: dollars === null ? null : BigInt(dollars) * 1_000_000n,
    chain: null,
    counterparty: null,
    mcc: null,
    symbol: null,
  },
  was: 'allow',
  isReturned: false,
  amount: String(dollars),
  isApproved: false,
  beside: [],
  ...changes,
})
const pay = (spend: PastSpend, counterparty: string | null): PastSpend => ({
  ...spend,
  spend: { ...spend.spend, counterparty },
})
const replayPast = (policy: object, ...past: PastSpend[]) =>
  replay(policyWith(policy), past).map(({ now, violations }) => [now, ...violations.map(({ rule }) => rule)])

describe('a replay', () => {
  it('counts the week from Monday and the month from its first day', () => {
    const days = ['22T12:00', '23T12:00', '24T12:00', '29T12:00', '30T12:00'].map((when) =>
      buildSpend(4, when),
    )
    expect(replayPast({ weeklyBudget: { max: '10' } }, ...days)).toEqual([
      ['allow'],
      ['allow'],
      ['allow'],
      ['deny', 'weekly_budget'],
      ['allow'],
    ])
    expect(replayPast({ monthlyBudget: { max: '100', maxCount: 3 } }, ...days)).toEqual([
      ['allow'],
      ['allow'],
      ['allow'],
      ['deny', 'monthly_count'],
      ['deny', 'monthly_count'],
    ])
    const december = { ...buildSpend(4, '30T12:00'), at: new Date('2026-12-01T00:00:00Z') }
    expect(replayPast({ monthlyBudget: { max: '100', maxCount: 3 } }, ...days, december).at(-1)).toEqual([
      'allow',
    ])
  })

  it('reports each spend’s actual and replayed verdict', () => {
    expect(replay(policyWith({}), [buildSpend(11, '20T10:00', { was: 'approval_required' })])).toEqual([
      {
        id: 'dec_20T10:00',
        was: 'approval_required',
        now: 'deny',
        violations: [
          expect.objectContaining({ rule: 'per_transaction', limit: '10', requested: '11' }),
          expect.objectContaining({ rule: 'daily_budget', used: '0', resetsAt: '2026-11-21T00:00:00.000Z' }),
        ],
      },
    ])
  })

  it('counts allowed spends in their day’s budget, and nothing else', () => {
    const day = [buildSpend(6, '20T10:00'), buildSpend(5, '20T11:00'), buildSpend(4, '20T12:00')]
    expect(replayPast({}, ...day, buildSpend(10, '21T00:00'))).toEqual([
      ['allow'],
      ['deny', 'daily_budget'],
      ['allow'],
      ['allow'],
    ])
    expect(
      replayPast({}, buildSpend(6, '20T10:00', { isReturned: true }), buildSpend(10, '20T11:00')),
    ).toEqual([['allow'], ['allow']])
  })

  it('counts the number of spends of a day', () => {
    const past = ['20T10:00', '20T11:00', '20T12:00'].map((when) => buildSpend(1, when))
    expect(replayPast({ dailyBudget: { max: '10', maxCount: 2 } }, ...past)).toEqual([
      ['allow'],
      ['allow'],
      ['deny', 'daily_count'],
    ])
  })

  it('keeps a denial for a reason outside the policy', () => {
    const paused = { limit: null, used: null, requested: null, remaining: null, resetsAt: null }
    const past = buildSpend(1, '20T10:00', { was: 'deny', beside: [{ rule: 'paused', ...paused }] })
    expect(replayPast({}, past)).toEqual([['deny', 'paused']])
    expect(replayPast({}, { ...past, beside: [] })).toEqual([['allow']])
  })

  it('requires the owner’s approval again if there was none', () => {
    const approval = { approval: { above: '2' } }
    expect(replayPast(approval, buildSpend(3, '20T10:00'))).toEqual([['approval_required']])
    expect(replayPast(approval, buildSpend(3, '20T10:00', { isApproved: true }))).toEqual([['allow']])
    expect(replayPast(approval, buildSpend(2, '20T10:00'))).toEqual([['allow']])
    // A pending spend is not counted.
    expect(replayPast(approval, buildSpend(9, '20T10:00'), buildSpend(2, '20T11:00'))).toEqual([
      ['approval_required'],
      ['allow'],
    ])
  })

  it('keeps a lack of funds, unless the draft denies the spend first', () => {
    const poor = buildSpend(6, '20T10:00', { was: 'insufficient_funds' })
    expect(replayPast({}, poor, buildSpend(6, '20T11:00'))).toEqual([['insufficient_funds'], ['allow']])
    expect(replayPast({ perTransaction: { max: '5' } }, poor)).toEqual([['deny', 'per_transaction']])
  })

  it('starts a payee’s cool-down at its first request, in any letter case', () => {
    const counterparties = { newPayeeCooldownSec: 3600 }
    const asks = [
      pay(buildSpend(1, '20T10:00'), payee),
      pay(buildSpend(1, '20T10:59'), payee.toLowerCase()),
      pay(buildSpend(1, '20T11:00'), payee.toUpperCase()),
      pay(buildSpend(1, '20T11:01'), `0x${'c'.repeat(40)}`),
    ]
    expect(replayPast({ counterparties }, ...asks)).toEqual([
      ['deny', 'new_payee_cooldown'],
      ['deny', 'new_payee_cooldown'],
      ['allow'],
      ['deny', 'new_payee_cooldown'],
    ])
    const unknownPayees = ['20T10:00', '20T12:00'].map((when) => buildSpend(1, when))
    expect(replayPast({ counterparties }, ...unknownPayees)).toEqual([
      ['deny', 'new_payee_cooldown'],
      ['deny', 'new_payee_cooldown'],
    ])
  })
})
