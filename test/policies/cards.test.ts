import { describe, expect, it } from 'vitest'
import { refusalOf } from '../../policies/cards/controls.ts'
import { type LooseControls, loosenedControls } from '../../policies/cards/loosening.ts'

const open: LooseControls = {
  status: 'active',
  channels: ['ecommerce', 'contactless', 'atm', 'magstripe'],
  mccAllow: null,
  mccDeny: [],
  purchaseMax: null,
  dailyMax: null,
  priority: ['USDC', 'USD'],
}
const tight: LooseControls = {
  status: 'frozen',
  channels: ['ecommerce'],
  mccAllow: ['5411'],
  mccDeny: ['7995'],
  purchaseMax: 100n,
  dailyMax: 100n,
  priority: ['USDC'],
}

describe('a card’s controls', () => {
  it('are loosened by everything that lets it pay more, and tightened by nothing of that', () => {
    expect(loosenedControls(tight, open)).toEqual([
      'freeze',
      'limits.daily',
      'limits.perPurchase',
      'channels',
      'mcc.allow',
      'mcc.deny',
      'priority',
    ])
    expect(loosenedControls(open, tight)).toEqual([])
    expect(loosenedControls(tight, tight)).toEqual([])
    expect(loosenedControls(tight, { ...tight, dailyMax: 101n })).toEqual(['limits.daily'])
    expect(loosenedControls(tight, { ...tight, mccAllow: ['5411', '5812'] })).toEqual(['mcc.allow'])
  })

  it('refuse what is not known wherever it would matter', () => {
    const purchase = { channel: 'ecommerce', mcc: '5411', units: 1n } as const
    expect(refusalOf(open, { ...purchase, channel: null, mcc: null })).toBeNull()
    expect(refusalOf({ ...open, channels: ['ecommerce'] }, { ...purchase, channel: null })).toBe(
      'channel_off',
    )
    expect(refusalOf({ ...open, channels: [] }, { ...purchase, channel: 'chip' })).toBeNull()
    expect(refusalOf({ ...open, mccDeny: ['7995'] }, { ...purchase, mcc: null })).toBe('merchant_denied')
    expect(refusalOf({ ...open, mccAllow: ['5411'] }, { ...purchase, mcc: null })).toBe('merchant_denied')
    expect(refusalOf({ ...open, mccAllow: ['5411'], mccDeny: ['5411'] }, purchase)).toBe('merchant_denied')
    expect(refusalOf({ ...open, purchaseMax: 1n }, purchase)).toBeNull()
    expect(refusalOf({ ...open, purchaseMax: 1n }, { ...purchase, units: 2n })).toBe('purchase_limit')
  })
})
