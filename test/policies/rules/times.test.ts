import { describe, expect, it } from 'vitest'
import { evaluate } from '../../../policies/evaluate.ts'
import { spendPolicy } from '../../../policies/policy.ts'

const spend = {
  category: 'transfer',
  asset: 'USDC',
  usdMicros: 0n,
  chain: null,
  counterparty: null,
  mcc: null,
  symbol: null,
} as const

/** Time violations of a policy at a moment. 2026-11-20 is a Friday. */
const judge = (times: object, at: string) => {
  const limits = {
    perTransaction: { max: '1' },
    dailyBudget: { max: '1' },
    categories: { allow: ['transfer'] },
  }
  return evaluate(spendPolicy.parse({ ...limits, ...times }), spend, new Date(at))
}
const uncounted = { used: null, remaining: null }

describe('the time rules of a policy', () => {
  const morning = { days: ['fri'], start: '08:00', end: '10:00', tz: 'UTC' }
  const evening = { days: ['fri', 'sat'], start: '20:00', end: '22:00', tz: 'UTC' }

  it('allow a spend within any of the windows', () => {
    expect(judge({ timeWindows: [morning, evening] }, '2026-11-20T09:00:00Z')).toEqual([])
    expect(judge({ timeWindows: [morning, evening] }, '2026-11-20T21:00:00Z')).toEqual([])
    expect(judge({}, '2026-11-20T12:00:00Z')).toEqual([])
  })

  it('deny a spend between them, with all windows and the next opening', () => {
    expect(judge({ timeWindows: [morning, evening] }, '2026-11-20T12:00:00Z')).toEqual([
      {
        ...uncounted,
        rule: 'time_window',
        limit: 'fri 08:00-10:00 UTC; fri,sat 20:00-22:00 UTC',
        requested: '2026-11-20T12:00:00.000Z',
        resetsAt: '2026-11-20T20:00:00.000Z',
      },
    ])
  })

  it('deny always without a window, and at an invalid time', () => {
    expect(judge({ timeWindows: [] }, '2026-11-20T12:00:00Z')).toEqual([
      { ...uncounted, rule: 'time_window', limit: '', requested: '2026-11-20T12:00:00.000Z', resetsAt: null },
    ])
    expect(judge({ timeWindows: [morning] }, 'never')).toEqual([
      { ...uncounted, rule: 'time_window', limit: 'fri 08:00-10:00 UTC', requested: null, resetsAt: null },
    ])
  })

  it('report a policy’s start and end of validity', () => {
    const [notBefore, expiresAt] = ['2026-11-20T12:00:00Z', '2026-11-21T12:00:00Z']
    expect(judge({ notBefore }, '2026-11-20T11:00:00Z')).toEqual([
      {
        ...uncounted,
        rule: 'not_yet_valid',
        limit: notBefore,
        requested: '2026-11-20T11:00:00.000Z',
        resetsAt: notBefore,
      },
    ])
    expect(judge({ expiresAt }, '2026-11-21T12:00:00Z')).toEqual([
      {
        ...uncounted,
        rule: 'expired',
        limit: expiresAt,
        requested: '2026-11-21T12:00:00.000Z',
        resetsAt: null,
      },
    ])
    expect(judge({ notBefore, expiresAt }, 'never').map(({ rule, requested }) => [rule, requested])).toEqual([
      ['not_yet_valid', null],
      ['expired', null],
    ])
  })
})
