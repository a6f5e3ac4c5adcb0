import { describe, expect, it } from 'vitest'
import { loosenings } from '../../policies/loosening.ts'
import { type Policy, spendPolicy } from '../../policies/policy.ts'

const [ada, ben] = ['a', 'b'].map((digit) => `0x${digit.repeat(40)}`)
const policyWith = (parts: object): Policy =>
  spendPolicy.parse({
    perTransaction: { max: '10' },
    dailyBudget: { max: '10' },
    categories: { allow: ['transfer'] },
    ...parts,
  })
const workday = { days: ['mon', 'tue'], start: '09:00', end: '17:00', tz: 'UTC' }
const night = { days: ['mon', 'tue'], start: '22:00', end: '06:00', tz: 'UTC' }
const windows = (...timeWindows: object[]) => ({ timeWindows })

/** A change that loosens a member; its inverse only tightens. */
const looser: readonly (readonly [member: string, before: object, after: object])[] = [
  ['perTransaction', { perTransaction: { max: '9.99' } }, {}],
  ['dailyBudget', {}, { dailyBudget: { max: '10.01' } }],
  ['dailyBudget', { dailyBudget: { max: '10', maxCount: 2 } }, { dailyBudget: { max: '10', maxCount: 3 } }],
  ['dailyBudget', { dailyBudget: { max: '10', maxCount: 2 } }, {}],
  ['weeklyBudget', { weeklyBudget: { max: '20' } }, { weeklyBudget: { max: '20.01' } }],
  ['weeklyBudget', { weeklyBudget: { max: '20' } }, {}],
  ['weeklyBudget', { weeklyBudget: { max: '20', maxCount: 2 } }, { weeklyBudget: { max: '20' } }],
  [
    'monthlyBudget',
    { monthlyBudget: { max: '20', maxCount: 2 } },
    { monthlyBudget: { max: '20', maxCount: 3 } },
  ],
  ['monthlyBudget', { monthlyBudget: { max: '20' } }, {}],
  ['categories', {}, { categories: { allow: ['transfer', 'swap'] } }],
  ['counterparties', { counterparties: { allow: [ada] } }, { counterparties: { allow: [ada, ben] } }],
  ['counterparties', { counterparties: { allow: [ada] } }, {}],
  ['counterparties', { counterparties: { deny: [ada, ben] } }, { counterparties: { deny: [ada] } }],
  ['counterparties', { counterparties: { deny: [ada] } }, { counterparties: { deny: [] } }],
  ['counterparties', { counterparties: { newPayeeCooldownSec: 60 } }, {}],
  [
    'counterparties',
    { counterparties: { newPayeeCooldownSec: 60 } },
    { counterparties: { newPayeeCooldownSec: 59 } },
  ],
  ['assets', { assets: ['USDC'] }, { assets: ['USDC', 'EURC'] }],
  ['assets', { assets: [] }, {}],
  ['chains', { chains: ['base'] }, { chains: ['base', 'polygon'] }],
  ['chains', { chains: ['base'] }, {}],
  ['mcc', { mcc: { allow: ['5411'] } }, { mcc: { allow: ['5411', '5812'] } }],
  ['mcc', { mcc: { deny: ['5411'] } }, {}],
  ['symbols', { symbols: { allow: ['VTI'] } }, {}],
  ['symbols', { symbols: { deny: ['VTI', 'TSLA'] } }, { symbols: { deny: ['TSLA'] } }],
  ['timeWindows', windows(), windows(workday)],
  ['timeWindows', windows(workday), {}],
  ['timeWindows', windows(workday), windows(workday, night)],
  ['timeWindows', windows({ ...workday, start: '09:01' }), windows(workday)],
  ['timeWindows', windows({ ...workday, end: '16:59' }), windows(workday)],
  ['timeWindows', windows({ ...workday, days: ['mon'] }), windows(workday)],
  ['approval', { approval: { above: '1' } }, { approval: { above: '1.01' } }],
  ['approval', { approval: { above: '1' } }, {}],
  ['notBefore', { notBefore: '2026-01-02T00:00:00Z' }, { notBefore: '2026-01-01T00:00:00Z' }],
  ['notBefore', { notBefore: '2026-01-02T00:00:00Z' }, {}],
  ['expiresAt', { expiresAt: '2026-01-02T00:00:00Z' }, { expiresAt: '2026-01-03T00:00:00Z' }],
  ['expiresAt', { expiresAt: '2026-01-02T00:00:00Z' }, {}],
]

describe('a change of a policy', () => {
  it.each(looser)('loosens %s from %j to %j, and only tightens in reverse', (member, before, after) => {
    expect(loosenings(policyWith(before), policyWith(after))).toEqual([member])
    expect(loosenings(policyWith(after), policyWith(before))).toEqual([])
    expect(loosenings(policyWith(before), policyWith(before))).toEqual([])
  })

  it('loosens by each window that does not lie within an earlier one', () => {
    const compareWindows = (before: object[], after: object[]) =>
      loosenings(policyWith(windows(...before)), policyWith(windows(...after)))
    expect(compareWindows([workday, night], [{ ...workday, start: '10:00', end: '11:00' }, night])).toEqual(
      [],
    )
    expect(compareWindows([night, workday], [workday])).toEqual([])
    // Other overnight hours are not compared: in doubt they count as looser.
    expect(compareWindows([night], [{ ...night, start: '23:00' }])).toEqual(['timeWindows'])
    expect(compareWindows([night], [{ ...workday, start: '22:30', end: '23:00' }])).toEqual(['timeWindows'])
    expect(compareWindows([workday], [{ ...night, start: '10:00', end: '09:30' }])).toEqual(['timeWindows'])
    expect(compareWindows([workday], [{ ...workday, tz: 'Europe/Berlin' }])).toEqual(['timeWindows'])
    expect(
      compareWindows([{ ...workday, end: '09:00' }], [{ ...workday, end: '09:00', days: ['tue'] }]),
    ).toEqual([])
    expect(
      compareWindows([{ ...workday, end: '09:00' }], [{ ...workday, start: '09:00', end: '08:59' }]),
    ).toEqual(['timeWindows'])
  })

  it('names everything that it loosens', () => {
    expect(
      loosenings(
        policyWith({ assets: ['USDC'], symbols: { deny: ['VTI'] } }),
        policyWith({ dailyBudget: { max: '20' } }),
      ),
    ).toEqual(['dailyBudget', 'assets', 'symbols'])
  })

  it('loosens when there was no policy, since that allowed nothing', () => {
    expect(loosenings(null, policyWith({}))).toEqual(['policy'])
    expect(loosenings(policyWith({}), null)).toEqual([])
    expect(loosenings(null, null)).toEqual([])
  })
})
