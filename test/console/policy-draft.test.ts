/** Drafts of policies: what stands in the editor's fields. */
import { describe, expect, it } from 'vitest'
import { spendPolicy } from '../../policies/policy.ts'
import { policyPresets, presetRepeats } from '../../policies/presets.ts'
import {
  deriveScopes,
  draftPreset,
  emptyDraft,
  findProblems,
  presets,
  readPolicy,
  toDraft,
  toPolicy,
} from '../../src/console/words/policy-draft.ts'

const full = {
  currency: 'USD',
  perTransaction: { max: '10' },
  dailyBudget: { max: '20', maxCount: 5 },
  weeklyBudget: { max: '80' },
  monthlyBudget: { max: '250', maxCount: 100 },
  totalBudget: { max: '400', maxCount: 150 },
  repeatLimit: { count: 5, perSec: 900 },
  categories: { allow: ['transfer', 'x402'] },
  counterparties: {
    allow: [`0x${'a'.repeat(40)}`],
    deny: [`0x${'b'.repeat(40)}`],
    newPayeeCooldownSec: 3600,
  },
  sellers: {
    allow: ['https://api.example.com'],
    deny: ['*.bad.example'],
    minDelivered: { of: 30, ratio: 0.57 },
    unknown: 'ask',
  },
  assets: ['USDC'],
  chains: ['base-sepolia'],
  mcc: { allow: ['5411'], deny: ['7995'] },
  symbols: { allow: ['VTI'], deny: ['GME'] },
  timeWindows: [{ days: ['mon', 'fri'], start: '09:00', end: '17:00', tz: 'Europe/Berlin' }],
  approval: { above: '3', ttlSec: 3600 },
  notBefore: '2026-11-20T09:00:00.000Z',
  expiresAt: '2026-12-20T09:00:00.000Z',
}

describe('drafts of policies', () => {
  it('edits every member and returns an unchanged policy as it was', () => {
    const policy = readPolicy(full)
    if (policy === null) throw new Error('There is a policy.')
    expect(toPolicy(toDraft(policy))).toEqual(full)
    expect(Object.keys(full).sort()).toEqual(Object.keys(spendPolicy.shape).sort())
    expect(findProblems(toDraft(policy))).toEqual({})
  })

  it('offers the presets of the pages where agents connect', () => {
    const known = policyPresets.map(({ approvalAbove, ...preset }) => ({
      ...preset,
      above: approvalAbove ?? '',
    }))
    expect(presets).toEqual(known)
    for (const preset of presets) {
      const draft = draftPreset(preset)
      expect([draft.repeatCount, draft.repeatSpan].map(Number)).toEqual([
        presetRepeats.count,
        presetRepeats.perSec,
      ])
      expect(findProblems(draft)).toEqual({})
      expect(spendPolicy.safeParse(toPolicy(draft)).success).toBe(true)
    }
  })

  it('keeps members of a policy that it does not know', () => {
    const policy = readPolicy({ ...full, futureRule: { on: true } })
    if (policy === null) throw new Error('There is a policy.')
    expect(toPolicy(toDraft(policy), policy)).toMatchObject({ futureRule: { on: true } })
  })

  it('keeps the seconds of moments that were not touched', () => {
    const moments = { notBefore: '2026-11-20T09:00:41.000Z', expiresAt: '2026-12-20T09:00:59.000Z' }
    const policy = readPolicy({ ...full, ...moments })
    if (policy === null) throw new Error('There is a policy.')
    expect(toPolicy(toDraft(policy), policy)).toMatchObject(moments)
    expect(toPolicy({ ...toDraft(policy), until: '' }, policy)).not.toHaveProperty('expiresAt')
  })

  it('removes what was emptied', () => {
    const policy = readPolicy(full)
    if (policy === null) throw new Error('There is a policy.')
    const draft = { ...toDraft(policy), weekly: '', above: '', payees: null, payeesNever: '', cooldown: '' }
    const made = toPolicy(draft, policy)
    expect(made).not.toHaveProperty('weeklyBudget')
    expect(made).not.toHaveProperty('approval')
    expect(made).not.toHaveProperty('counterparties')
  })

  it('says what is wrong in words, at its field', () => {
    const draft = draftPreset(presets[0])
    expect(findProblems({ ...draft, perTransaction: '30' })).toEqual({
      perTransaction: 'More than the $20.00 a day. Lower it, or raise the day.',
    })
    expect(findProblems({ ...draft, daily: '200', weekly: '60', monthly: '' })).toEqual({
      daily: 'More than the $60.00 a week. Lower it, or raise the week.',
    })
    expect(findProblems({ ...draft, daily: '1e3' }).daily).toBe('An amount such as 12.50.')
    expect(findProblems({ ...draft, above: '0' }).above).toBe('More than nothing.')
    expect(findProblems({ ...draft, payees: '0x12' }).payees).toContain('is no address')
    const named = `0x${'1'.repeat(40)}\ncontact:Smith, Bob\nrcp_${'0'.repeat(26)}`
    expect(findProblems({ ...draft, payees: named }).payees ?? '').toBe('')
    expect(findProblems({ ...draft, payees: 'contact:A contact:B' }).payees).toContain('is no address')
    expect(findProblems({ ...draft, shopsNever: '79956' }).shopsNever).toContain('four digits')
    expect(findProblems({ ...draft, sellers: 'example.com' }).sellers).toContain('is no website')
    expect(findProblems({ ...draft, dailyCount: '2.5' }).dailyCount).toContain('whole number')
    expect(findProblems({ ...draft, from: '2026-12-02T00:00', until: '2026-12-01T00:00' }).until).toContain(
      'ends',
    )
    expect(findProblems({ ...draft, categories: [] }).categories).toContain('Tick')
    expect(Object.keys(findProblems(emptyDraft)).sort()).toEqual(['categories', 'daily', 'perTransaction'])
  })

  it('asks for the scopes that the ways of paying need, and no others', () => {
    expect(deriveScopes([])).toEqual(['wallets:read', 'events:read'])
    expect(deriveScopes(['transfer', 'x402'])).toEqual([
      'wallets:read',
      'events:read',
      'wallets:transfer',
      'purchases:pay',
      'fx:pay',
    ])
  })
})
