import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { policyAssets, spendPolicy } from '../../policies/policy.ts'
import { usdMicrosOf, usdOfMicros } from '../../policies/usd.ts'
import { assetDecimals } from '../../src/core/money/money.ts'
import { dereference } from '../dereferenced.ts'

const plain = {
  perTransaction: { max: 50 },
  dailyBudget: { max: '100.00' },
  categories: { allow: ['transfer'] },
}

const findIssues = (document: unknown) =>
  spendPolicy.safeParse(document).error?.issues.map(({ path, message }) => `${path.join('.')}: ${message}`) ??
  []

const numberText = (text: string) => ({ isLosslessNumber: true, toString: () => text })

describe('spendPolicy', () => {
  it('normalizes numbers and decimal strings to the shortest decimal string', () => {
    const policy = spendPolicy.parse({ ...plain, perTransaction: { max: numberText('1.10') } })
    expect(policy).toEqual({
      currency: 'USD',
      perTransaction: { max: '1.1' },
      dailyBudget: { max: '100' },
      categories: { allow: ['transfer'] },
    })
  })

  it.each([
    ['0', 'above zero'],
    [0, 'above zero'],
    ['-1', 'plain decimal'],
    ['+1', 'plain decimal'],
    ['01', 'plain decimal'],
    [1e21, 'plain decimal'],
    [0.0000001, 'plain decimal'],
    [numberText('1e2'), 'plain decimal'],
    [Number.NaN, 'decimal string or a number'],
    [null, 'decimal string or a number'],
    [{ isLosslessNumber: false, toString: () => '1' }, 'decimal string or a number'],
    [{ toString: () => '1' }, 'decimal string or a number'],
    ['1'.padEnd(65, '0'), 'Too big'],
    ['1.005', 'USD has 2'],
    ['1000000000000.01', 'not be over'],
  ])('rejects the amount %s', (max, message) => {
    expect(findIssues({ ...plain, perTransaction: { max } })[0]).toContain(message)
  })

  it('accepts the largest amount', () => {
    const max = '1000000000000'
    expect(findIssues({ ...plain, dailyBudget: { max }, perTransaction: { max } })).toEqual([])
  })

  it('rejects a per-spend cap above the daily budget', () => {
    expect(findIssues({ ...plain, perTransaction: { max: '100.01' } })).toEqual([
      'perTransaction.max: must not be over dailyBudget.max (100)',
    ])
  })

  it('rejects members that it does not enforce', () => {
    expect(findIssues({ ...plain, approvals: { above: '1' } })[0]).toContain('approval')
    expect(findIssues({ ...plain, dailyBudget: { max: '100', maxcount: 3 } })[0]).toContain('maxcount')
  })

  it('rejects a policy without categories and an unknown category', () => {
    expect(findIssues({ perTransaction: { max: 1 }, dailyBudget: { max: 1 } })[0]).toContain('categories')
    expect(findIssues({ ...plain, categories: { allow: ['gifts'] } })[0]).toContain('categories.allow.0')
  })

  it('normalizes addresses to lower case and rejects invalid ones', () => {
    const address = `0x${'Ab'.repeat(20)}`
    const policy = spendPolicy.parse({ ...plain, counterparties: { deny: [address] } })
    expect(policy.counterparties).toEqual({ deny: [address.toLowerCase()] })
    expect(findIssues({ ...plain, counterparties: { allow: ['bob'] } })[0]).toContain('EVM address')
  })

  it('rejects times that are not UTC and an end before the beginning', () => {
    expect(findIssues({ ...plain, notBefore: '2026-01-01T00:00:00+02:00' })[0]).toContain('UTC')
    const [notBefore, expiresAt] = ['2026-02-01T00:00:00Z', '2026-01-01T00:00:00Z']
    expect(findIssues({ ...plain, notBefore, expiresAt })).toEqual(['expiresAt: must be after notBefore'])
  })

  it('accepts exactly the assets of money', () => {
    expect([...policyAssets].sort()).toEqual(Object.keys(assetDecimals).sort())
  })

  it('shows both forms of an amount, and a description of every field, in its JSON Schema', () => {
    const schema = dereference(z.toJSONSchema(spendPolicy, { io: 'input' }))
    expect(schema).toMatchObject({
      additionalProperties: false,
      required: ['perTransaction', 'dailyBudget', 'categories'],
      properties: {
        perTransaction: {
          properties: {
            max: { anyOf: [{ type: 'string', pattern: expect.any(String) }, { type: 'number' }] },
          },
        },
      },
    })
    const { properties } = z.looseObject({ properties: z.record(z.string(), z.unknown()) }).parse(schema)
    for (const field of Object.values(properties)) expect(field).toHaveProperty('description')
  })
})

describe('the bounds of a spend policy', () => {
  const many = (count: number, entry: string) => Array.from({ length: count }, () => entry)
  const payee = `0x${'a'.repeat(40)}`
  const window = { days: ['mon'], start: '09:00', end: '17:00', tz: 'UTC' }
  const isPolicy = (parts: object) => spendPolicy.safeParse({ ...plain, ...parts }).success

  it.each([
    [{ dailyBudget: { max: 100, maxCount: 1 } }, { dailyBudget: { max: 100, maxCount: 0 } }],
    [{ dailyBudget: { max: 100, maxCount: 1e6 } }, { dailyBudget: { max: 100, maxCount: 1e6 + 1 } }],
    [{ categories: { allow: many(16, 'card') } }, { categories: { allow: many(17, 'card') } }],
    [{ counterparties: { allow: many(1000, payee) } }, { counterparties: { allow: many(1001, payee) } }],
    [{ counterparties: { deny: many(1000, payee) } }, { counterparties: { deny: many(1001, payee) } }],
    [{ counterparties: { deny: [payee] } }, { counterparties: { deny: [`${payee}a`] } }],
    [{ counterparties: { deny: [payee] } }, { counterparties: { deny: [`a${payee}`] } }],
    [{ counterparties: { newPayeeCooldownSec: 1 } }, { counterparties: { newPayeeCooldownSec: 0 } }],
    [
      { counterparties: { newPayeeCooldownSec: 2_592_000 } },
      { counterparties: { newPayeeCooldownSec: 2_592_001 } },
    ],
    [{ counterparties: {} }, { counterparties: { allowed: [] } }],
    [{ assets: many(16, 'USDC') }, { assets: many(17, 'USDC') }],
    [{ assets: [] }, { assets: ['BTC'] }],
    [{ chains: many(16, 'base') }, { chains: many(17, 'base') }],
    [{ chains: [] }, { chains: ['bitcoin'] }],
    [{ mcc: { allow: many(1000, '5411') } }, { mcc: { allow: many(1001, '5411') } }],
    [{ mcc: { deny: ['5411'] } }, { mcc: { deny: ['54110'] } }],
    [{ mcc: { deny: ['0000'] } }, { mcc: { deny: ['541'] } }],
    [{ mcc: {} }, { mcc: { allowed: [] } }],
    [{ symbols: { allow: many(1000, 'VTI') } }, { symbols: { allow: many(1001, 'VTI') } }],
    [{ symbols: { deny: [' brk.b '] } }, { symbols: { deny: ['BRK B'] } }],
    [{ symbols: { deny: [many(12, 'A').join('')] } }, { symbols: { deny: [many(13, 'A').join('')] } }],
    [{ symbols: { deny: ['A'] } }, { symbols: { deny: [''] } }],
    [{ symbols: {} }, { symbols: { allowed: [] } }],
    [{ timeWindows: Array(32).fill(window) }, { timeWindows: Array(33).fill(window) }],
    [{ approval: { above: 1, ttlSec: 60 } }, { approval: { above: 1, ttlSec: 59 } }],
    [{ approval: { above: 1, ttlSec: 604_800 } }, { approval: { above: 1, ttlSec: 604_801 } }],
    [{ approval: { above: 1 } }, { approval: { above: 1, below: 2 } }],
    [{ currency: 'USD' }, { currency: 'EUR' }],
    [{ perTransaction: { max: 1 } }, { perTransaction: { max: 1, min: 1 } }],
    [{ notBefore: '2026-01-01T00:00:00Z' }, { notBefore: '2026-01-01' }],
    [
      { notBefore: '2026-01-01T00:00:00Z', expiresAt: '2026-01-01T00:00:01Z' },
      { notBefore: '2026-01-01T00:00:00Z', expiresAt: '2026-01-01T00:00:00Z' },
    ],
  ])('accept %j and not %j', (within, beyond) => {
    expect([isPolicy(within), isPolicy(beyond)]).toEqual([true, false])
  })

  it('are named in the error', () => {
    expect(findIssues({ ...plain, mcc: { allow: ['x'] } })).toEqual(['mcc.allow.0: must be four digits'])
    expect(findIssues({ ...plain, symbols: { allow: ['?'] } })).toEqual(['symbols.allow.0: must be a ticker'])
    expect(findIssues({ ...plain, perTransaction: { max: '1.005' } })).toEqual([
      'perTransaction.max: has 3 fraction digits; USD has 2',
    ])
    expect(findIssues({ ...plain, timeWindows: [{ ...window, start: 'noon' }] })).toEqual([
      'timeWindows.0.start: must be a time of day from 00:00 to 23:59',
    ])
    expect(findIssues({ ...plain, timeWindows: [{ ...window, tz: 'Mars' }] })).toEqual([
      'timeWindows.0.tz: must be an IANA time zone, such as Europe/Berlin',
    ])
  })

  it('replace omitted members', () => {
    expect(
      spendPolicy.parse({ ...plain, approval: { above: 1 }, symbols: { deny: [' brk.b '] } }),
    ).toMatchObject({
      currency: 'USD',
      approval: { above: '1', ttlSec: 86_400 },
      symbols: { deny: ['BRK.B'] },
    })
  })
})

describe('USD in millionths', () => {
  it('converts both ways without trailing zeros', () => {
    expect(usdMicrosOf('12.5')).toBe(12_500_000n)
    expect(usdOfMicros(12_500_000n)).toBe('12.5')
    expect(usdOfMicros(1n)).toBe('0.000001')
    expect(usdOfMicros(-1_500_000n)).toBe('-1.5')
  })

  it('converts an invalid text to zero', () => {
    for (const text of ['a lot', '', '-1', '1.', '.5', '01', ' 1', '1 ', '1e3', '1,5'])
      expect(usdMicrosOf(text)).toBe(0n)
  })

  it('truncates below a millionth, so that a limit never exceeds its text', () => {
    expect(usdMicrosOf('0.0000019')).toBe(1n)
    expect(usdMicrosOf('10')).toBe(10_000_000n)
    expect([usdOfMicros(0n), usdOfMicros(10_000_000n), usdOfMicros(123_456_789n)]).toEqual([
      '0',
      '10',
      '123.456789',
    ])
  })
})
