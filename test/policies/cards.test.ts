import { describe, expect, it } from 'vitest'
import { cardChannels, findControlRefusal } from '../../policies/cards/controls.ts'
import { type LoosenableControls, loosenedControls } from '../../policies/cards/loosening.ts'

const open: LoosenableControls = {
  status: 'active',
  channels: ['ecommerce', 'contactless', 'atm', 'magstripe'],
  mccAllow: null,
  mccDeny: [],
  purchaseMax: null,
  dailyMax: null,
  priority: ['USDC', 'USD'],
}
const tight: LoosenableControls = {
  status: 'frozen',
  channels: ['ecommerce'],
  mccAllow: ['5411'],
  mccDeny: ['7995'],
  purchaseMax: 100n,
  dailyMax: 100n,
  priority: ['USDC'],
}

describe('card controls', () => {
  it('are loosened by any change that permits more, and by no other', () => {
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

  it('decline unknown values that a control depends on', () => {
    const purchase = { channel: 'ecommerce', mcc: '5411', units: 1n } as const
    expect(findControlRefusal(open, { ...purchase, channel: null, mcc: null })).toBeNull()
    expect(findControlRefusal({ ...open, channels: ['ecommerce'] }, { ...purchase, channel: null })).toBe(
      'channel_off',
    )
    expect(findControlRefusal({ ...open, channels: [] }, { ...purchase, channel: 'chip' })).toBeNull()
    expect(findControlRefusal({ ...open, mccDeny: ['7995'] }, { ...purchase, mcc: null })).toBe(
      'merchant_denied',
    )
    expect(findControlRefusal({ ...open, mccAllow: ['5411'] }, { ...purchase, mcc: null })).toBe(
      'merchant_denied',
    )
    expect(findControlRefusal({ ...open, mccAllow: ['5411'], mccDeny: ['5411'] }, purchase)).toBe(
      'merchant_denied',
    )
    expect(findControlRefusal({ ...open, purchaseMax: 1n }, purchase)).toBeNull()
    expect(findControlRefusal({ ...open, purchaseMax: 1n }, { ...purchase, units: 2n })).toBe(
      'purchase_limit',
    )
  })

  it('decline everything on a frozen or canceled card, with that reason', () => {
    const purchase = { channel: 'chip', mcc: '5411', units: 1n } as const
    expect(findControlRefusal({ ...open, status: 'frozen' }, purchase)).toBe('card_frozen')
    expect(findControlRefusal({ ...open, status: 'canceled' }, purchase)).toBe('card_canceled')
    expect(findControlRefusal(open, purchase)).toBeNull()
  })

  it('decline each disabled channel, and nothing else', () => {
    for (const off of cardChannels) {
      const card = { ...open, channels: cardChannels.filter((channel) => channel !== off) }
      const refused = cardChannels.filter(
        (channel) => findControlRefusal(card, { channel, mcc: null, units: 1n }) !== null,
      )
      expect(refused).toEqual([off])
    }
    expect(cardChannels).toEqual(['ecommerce', 'contactless', 'atm', 'magstripe'])
  })

  it('decline merchants that are denied or not allowed', () => {
    const refusal = (card: Partial<LoosenableControls>, mcc: string) =>
      findControlRefusal({ ...open, ...card }, { channel: 'atm', mcc, units: 1n })
    expect(refusal({ mccAllow: ['5411', '5812'] }, '5812')).toBeNull()
    expect(refusal({ mccAllow: ['5411', '5812'] }, '7995')).toBe('merchant_denied')
    expect(refusal({ mccDeny: ['5411', '5812'] }, '5812')).toBe('merchant_denied')
    expect(refusal({ mccDeny: ['5411', '5812'] }, '7995')).toBeNull()
  })

  it('are loosened individually', () => {
    const listLoosened = (before: Partial<LoosenableControls>, after: Partial<LoosenableControls>) =>
      loosenedControls({ ...tight, ...before }, { ...tight, ...after })
    expect(listLoosened({}, { status: 'active' })).toEqual(['freeze'])
    expect(listLoosened({ status: 'active' }, { status: 'active' })).toEqual([])
    expect(listLoosened({}, { status: 'canceled' })).toEqual([])
    expect(listLoosened({}, { dailyMax: null })).toEqual(['limits.daily'])
    expect(listLoosened({}, { dailyMax: 99n })).toEqual([])
    expect(listLoosened({ dailyMax: null }, { dailyMax: 100n })).toEqual([])
    expect(listLoosened({}, { purchaseMax: 101n })).toEqual(['limits.perPurchase'])
    expect(listLoosened({}, { mccAllow: null })).toEqual(['mcc.allow'])
    expect(listLoosened({ mccAllow: null }, { mccAllow: null })).toEqual([])
    expect(listLoosened({ mccDeny: ['7995', '5812'] }, { mccDeny: ['7995'] })).toEqual(['mcc.deny'])
    expect(listLoosened({}, { mccDeny: ['7995', '5812'] })).toEqual([])
    expect(listLoosened({}, { channels: ['ecommerce', 'atm'] })).toEqual(['channels'])
    expect(listLoosened({}, { priority: ['USD', 'USDC'] })).toEqual(['priority'])
  })
})
