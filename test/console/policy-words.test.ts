/** Sentences about policies and decisions. */
import { describe, expect, it } from 'vitest'
import { moneyScopes, scopes } from '../../policies/scopes.ts'
import {
  describeDenied,
  describePolicy,
  describeRule,
  describeScope,
  describeScopeChange,
  describeScopes,
  describeVerdict,
  describeViolation,
  formatLongSpan,
  isSpending,
  joinSentence,
  nameDays,
  scopeGroups,
} from '../../src/console/words/policy.ts'

const rule = (name: string, members: Readonly<Record<string, string>> = {}) => ({ rule: name, ...members })

describe('words for a policy', () => {
  it('says amounts, ways and approval in three sentences', () => {
    const sentences = describePolicy({
      perTransaction: { max: '10' },
      dailyBudget: { max: '20' },
      weeklyBudget: { max: '80' },
      monthlyBudget: { max: '250' },
      categories: { allow: ['card', 'transfer', 'x402'] },
      assets: ['USDC', 'USD'],
      approval: { above: '3', ttlSec: 3600 },
    })
    expect(sentences.map(joinSentence)).toEqual([
      'Up to $10.00 at a time, $20.00 a day, $80.00 a week and $250.00 a month.',
      'By card, transfer and purchase, from USDC and USD.',
      'It asks you above $3.00, with 1 hour to answer.',
    ])
  })

  it('has a sentence for every other member', () => {
    const sentences = describePolicy({
      perTransaction: { max: '1' },
      dailyBudget: { max: '2', maxCount: 20 },
      totalBudget: { max: '9', maxCount: 30 },
      categories: { allow: ['transfer'] },
      chains: ['base'],
      counterparties: {
        allow: [`0x${'1'.repeat(40)}`],
        deny: [`0x${'2'.repeat(40)}`],
        newPayeeCooldownSec: 3600,
      },
      sellers: { allow: ['*.example.com'], deny: ['https://bad.example'] },
      mcc: { allow: ['5411'], deny: ['7995'] },
      symbols: { allow: ['VTI'], deny: ['GME'] },
      timeWindows: [{ days: ['mon', 'tue', 'wed', 'thu', 'fri'], start: '09:00', end: '17:00', tz: 'UTC' }],
      expiresAt: '2027-01-01T00:00:00.000Z',
    }).map(joinSentence)
    expect(sentences).toEqual([
      'Up to $1.00 at a time, $2.00 a day and $9.00 in total.',
      'By transfer, from any money, on Base only.',
      'At most 20 payments a day and 30 payments in total.',
      'It never asks you first.',
      'It may send only to 0x1111…1111.',
      'Never to 0x2222…2222.',
      'A new payee waits 1 hour before the first payment.',
      'It may buy only from *.example.com.',
      'Never from https://bad.example.',
      'By card, only at shops of kind 5411.',
      'Never by card: gambling (7995).',
      'It may trade only VTI.',
      'It never trades GME.',
      'Only Monday to Friday, 09:00 to 17:00 (UTC).',
      expect.stringMatching(/^Until .*2027|^Until .*2026/),
    ])
  })

  it('says of an empty list that it allows nothing', () => {
    const sentences = describePolicy({
      perTransaction: { max: '1' },
      dailyBudget: { max: '2' },
      categories: { allow: [] },
      counterparties: { allow: [] },
      timeWindows: [],
    }).map(joinSentence)
    expect(sentences).toContain('It may pay in no way at all.')
    expect(sentences).toContain('It may send to no address.')
    expect(sentences).toContain('It may spend at no time.')
  })

  it('names days as ranges where they are one', () => {
    expect(nameDays(['sat', 'sun'])).toBe('Saturday and Sunday')
    expect(nameDays(['wed', 'mon', 'tue'])).toBe('Monday to Wednesday')
    expect(nameDays(['mon', 'wed', 'fri'])).toBe('Monday, Wednesday and Friday')
    expect(nameDays(['mon', 'tue', 'wed', 'thu', 'fri', 'sat', 'sun'])).toBe('every day')
  })

  it('names spans by their largest whole unit', () => {
    expect(['60', '5400', '3600', '86400', '604800'].map((text) => formatLongSpan(Number(text)))).toEqual([
      '1 minute',
      '90 minutes',
      '1 hour',
      '1 day',
      '7 days',
    ])
  })

  it('sorts scopes into what is seen, changed and moved', () => {
    expect(
      describeScopes(['wallets:read', 'cards:read', 'cards:write', 'wallets:transfer', 'fx:pay']),
    ).toEqual({
      see: 'Balances and cards',
      change: 'Issue and set cards',
      move: 'Transfers and currency quotes',
    })
  })
})

describe('words for a decision', () => {
  it('joins broken rules and says their subject once', () => {
    const violations = [
      rule('per_transaction', { limit: '10', requested: '64' }),
      rule('daily_budget', { limit: '20', requested: '64', remaining: '18.5' }),
    ]
    expect(describeVerdict('deny', violations)).toBe(
      'Denied: $64.00 is above $10.00 a payment and above the $18.50 left today',
    )
  })

  it('has words for every rule, without a raw name or a missing number', () => {
    const rules = [
      'per_transaction',
      'daily_budget',
      'daily_count',
      'weekly_budget',
      'weekly_count',
      'monthly_budget',
      'monthly_count',
      'owner_budget',
      'category',
      'asset',
      'chain',
      'counterparty',
      'seller',
      'payee_changed',
      'price_changed',
      'seller_record',
      'new_payee_cooldown',
      'repeat_limit',
      'mcc',
      'symbol',
      'time_window',
      'not_yet_valid',
      'expired',
      'paused',
      'aml_screening',
    ]
    for (const name of rules) {
      const words = describeViolation(rule(name))
      expect(words).not.toMatch(/_|null|undefined|NaN|it breaks the rule/)
      expect(words).not.toBe('')
    }
  })

  it('has the columns of every rule in words, without a raw name', () => {
    const columns = (
      rule: string,
      limit: string | null,
      requested: string | null,
      used: string | null = null,
    ) => Object.values(describeRule({ rule, limit, requested, used }))
    expect(columns('per_transaction', '10', '3.5')).toEqual(['At a time', '$3.50', null, 'of $10.00'])
    expect(columns('weekly_budget', '80', '3.5', '37.7')).toEqual(['A week', '$3.50', '$37.70', 'of $80.00'])
    expect(columns('weekly_count', '50', '1', '9')).toEqual(['Payments a week', '1', '9', 'of 50'])
    expect(columns('category', 'card,transfer', 'card')).toEqual([
      'Pays by',
      'Cards',
      null,
      'Cards and Transfers',
    ])
    expect(columns('mcc', 'not 7995', '5942')).toEqual([
      'Kind of shop',
      'shops of kind 5942',
      null,
      'not gambling (7995)',
    ])
    expect(columns('seller', '', 'https://a.example')).toEqual(['Seller', 'a.example', null, 'none'])
    expect(columns('approval', '3', '3.5')).toEqual(['Ask me above', '$3.50', null, 'above $3.00'])
    expect(columns('new_payee_cooldown', '3600', null)).toEqual(['New payee waits', '', null, '1 hour'])
    expect(columns('repeat_limit', '5', '1', '5')).toEqual(['The same again', '1', '5', 'of 5'])
    expect(columns('symbol', null, '\u202EITV')).toEqual(['Trades', '\uFFFDITV', null, ''])
    expect(columns('moon_phase', 'full', null)).toEqual(['Moon phase', '', null, 'full'])
  })

  it('shows an unknown rule as it is, and hostile values harmlessly', () => {
    expect(describeViolation(rule('moon_phase'))).toBe('it breaks the rule “moon phase”')
    expect(describeViolation(rule('symbol', { requested: '\u202EITV' }))).toBe('it may not trade \uFFFDITV')
  })
})

describe('words for scopes', () => {
  it('exist for every scope, each in one group', () => {
    const grouped = scopeGroups.flatMap((group) => group.scopes)
    expect(grouped.toSorted()).toEqual(Object.keys(scopes).toSorted())
    for (const scope of grouped) expect(describeScope(scope)).not.toBe(scope)
    expect(grouped.filter(isSpending).toSorted()).toEqual([...moneyScopes].toSorted())
  })

  it('say what a change grants and takes away, and count what is too long to name', () => {
    expect(describeScopeChange([], [])).toBe('')
    expect(describeScopeChange(['wallets:transfer'], [])).toBe('Grant: send transfers')
    expect(describeScopeChange(['cards:read', 'compliance:write'], ['investing:trade'])).toBe(
      'Grant: see cards and submit Travel Rule data · Take away: place orders',
    )
    expect(describeScopeChange([], ['wallets:read', 'cards:read', 'fx:pay'])).toBe('Take away 3')
  })

  it('say which grants a policy denies', () => {
    expect(describeDenied(['wallets:transfer', 'cards:read'], ['gasless'])).toBe('')
    expect(describeDenied(['investing:trade', 'banking:pay'], ['transfer'])).toBe(
      'place orders or pay out to banks',
    )
  })
})
