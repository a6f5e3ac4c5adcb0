import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { policyAssets, spendPolicy } from '../../policies/policy.ts'
import { usdMicrosOf, usdOfMicros } from '../../policies/usd.ts'
import { assetDecimals } from '../../src/money.ts'

const plain = {
  perTransaction: { max: 50 },
  dailyBudget: { max: '100.00' },
  categories: { allow: ['transfer'] },
}

const issuesOf = (document: unknown) =>
  spendPolicy.safeParse(document).error?.issues.map(({ path, message }) => `${path.join('.')}: ${message}`) ??
  []

const numberText = (text: string) => ({ isLosslessNumber: true, toString: () => text })

describe('spendPolicy', () => {
  it('reads numbers and decimal strings into the shortest decimal string', () => {
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
    ['1.005', 'USD has 2'],
    ['1000000000000.01', 'not be over'],
  ])('refuses the amount %s', (max, message) => {
    expect(issuesOf({ ...plain, perTransaction: { max } })[0]).toContain(message)
  })

  it('takes the largest amount', () => {
    const max = '1000000000000'
    expect(issuesOf({ ...plain, dailyBudget: { max }, perTransaction: { max } })).toEqual([])
  })

  it('refuses a cap on one spend that is over the budget of the day', () => {
    expect(issuesOf({ ...plain, perTransaction: { max: '100.01' } })).toEqual([
      'perTransaction.max: must not be over dailyBudget.max (100)',
    ])
  })

  it('refuses members that it does not enforce', () => {
    expect(issuesOf({ ...plain, approvals: { above: '1' } })[0]).toContain('approval')
    expect(issuesOf({ ...plain, dailyBudget: { max: '100', maxcount: 3 } })[0]).toContain('maxcount')
  })

  it('refuses a policy without categories and a category that does not exist', () => {
    expect(issuesOf({ perTransaction: { max: 1 }, dailyBudget: { max: 1 } })[0]).toContain('categories')
    expect(issuesOf({ ...plain, categories: { allow: ['gifts'] } })[0]).toContain('categories.allow.0')
  })

  it('keeps addresses in lower case and refuses what is none', () => {
    const address = `0x${'Ab'.repeat(20)}`
    const policy = spendPolicy.parse({ ...plain, counterparties: { deny: [address] } })
    expect(policy.counterparties).toEqual({ deny: [address.toLowerCase()] })
    expect(issuesOf({ ...plain, counterparties: { allow: ['bob'] } })[0]).toContain('EVM address')
  })

  it('refuses times that are not UTC and an end before the beginning', () => {
    expect(issuesOf({ ...plain, notBefore: '2026-01-01T00:00:00+02:00' })[0]).toContain('UTC')
    const [notBefore, expiresAt] = ['2026-02-01T00:00:00Z', '2026-01-01T00:00:00Z']
    expect(issuesOf({ ...plain, notBefore, expiresAt })).toEqual(['expiresAt: must be after notBefore'])
  })

  it('knows the assets that money knows', () => {
    expect([...policyAssets].sort()).toEqual(Object.keys(assetDecimals).sort())
  })

  it('shows both forms of an amount, and a description of every field, in its JSON Schema', () => {
    const schema = z.toJSONSchema(spendPolicy, { io: 'input' })
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
    for (const field of Object.values(schema.properties ?? {})) expect(field).toHaveProperty('description')
  })
})

describe('USD in millionths', () => {
  it('converts both ways without needless zeros', () => {
    expect(usdMicrosOf('12.5')).toBe(12_500_000n)
    expect(usdOfMicros(12_500_000n)).toBe('12.5')
    expect(usdOfMicros(1n)).toBe('0.000001')
    expect(usdOfMicros(-1_500_000n)).toBe('-1.5')
  })

  it('counts a text that is no decimal as nothing', () => {
    expect(usdMicrosOf('a lot')).toBe(0n)
  })
})
