/** Sentences about calls that agents ask for, with hostile names. */
import { describe, expect, it } from 'vitest'
import { describeCall, listMembers, sentenceOfCall } from '../../src/console/words/calls.ts'
import { plainText, shortText } from '../../src/console/words/plain-text.ts'

const payee = '0x71C7656EC7ab88b098defB751B7401B5f6d8976F'

const say = (operation: string, input: Readonly<Record<string, unknown>>) =>
  sentenceOfCall(describeCall(operation, input))

describe('sentences about calls', () => {
  it('has one for each operation that can wait for the owner', () => {
    expect(say('wallets.transfer', { destination: payee, amount: 3.5 })).toBe('send 3.50 USDC to 0x71C7…976F')
    expect(say('transfers.gasless', { token: 'USDC', authorization: { to: payee, value: '2500000' } })).toBe(
      'relay a signed payment of 2.50 USDC to 0x71C7…976F',
    )
    expect(say('purchases.buy', { url: 'https://data.example/x', maxAmount: '0.02' })).toBe(
      'buy for at most 0.02 USDC from data.example',
    )
    expect(say('x402.fx', { from: 'EUR', to: 'USD' })).toBe('buy a currency quote of EUR in USD')
    expect(say('investing.order', { symbol: 'VTI', side: 'buy', notional: '50' })).toBe(
      'invest 50.00 USD in VTI',
    )
    expect(say('investing.order', { symbol: 'VTI', side: 'sell', notional: '50' })).toBe(
      'sell 50.00 USD of VTI',
    )
    expect(say('investing.order', { symbol: 'VTI', side: 'sell', qty: '1.25' })).toBe(
      'sell 1.25 shares of VTI',
    )
    expect(say('cards.authorize', { amount: '8', merchant: 'Corner Shop' })).toBe(
      'pay by card 8.00 USD at Corner Shop',
    )
    expect(say('banking.payouts.create', { amount: '100', recipientId: 'rcp_1' })).toBe(
      'pay out 100.00 USD to bank recipient rcp_1',
    )
  })

  it('names an operation without a template, and leaves out what it does not know', () => {
    expect(say('moon.fly', {})).toBe('run the operation moon.fly')
    expect(say('wallets.transfer', {})).toBe('send')
  })

  it('makes bidirectional controls and invisible characters visible', () => {
    const hostile = 'Shop\u202Emoc.live\u202C\u200B\u0000'
    expect(say('cards.authorize', { amount: '8', merchant: hostile })).toBe(
      'pay by card 8.00 USD at Shop\uFFFDmoc.live\uFFFD\uFFFD\uFFFD',
    )
    expect(plainText('a\u2066b\u{E0041}c\u3164')).toBe('a\uFFFDb\uFFFDc\uFFFD')
    expect(plainText('Grüße 日本 👍')).toBe('Grüße 日本 👍')
  })

  it('keeps markup as text and breaks no line', () => {
    const merchant = '<img src=x onerror=alert(1)>\n\nApproved'
    expect(describeCall('cards.authorize', { merchant }).party).toBe('<img src=x onerror=alert(1)> Approved')
  })

  it('cuts a very long name in the middle, and keeps it whole among the members', () => {
    const merchant = `${'a'.repeat(5000)}END`
    const words = say('cards.authorize', { amount: '8', merchant })
    expect(words.length).toBeLessThan(100)
    expect(words).toMatch(/…a+END$/)
    expect([...shortText(merchant)]).toHaveLength(64)
    expect(listMembers('cards.authorize', { merchant }, 'base')).toEqual([
      { label: 'Merchant', value: merchant, isGiven: true },
    ])
  })
})

describe('what exactly would run', () => {
  it('lists every member, nested ones too, with the defaults of the operation', () => {
    const members = listMembers('wallets.transfer', { destination: payee, amount: '3.5' }, 'base-sepolia')
    expect(members).toEqual([
      { label: 'To', value: payee, isGiven: true },
      { label: 'Amount', value: '3.5', isGiven: true },
      { label: 'Currency', value: 'USDC', isGiven: false },
      { label: 'Chain', value: 'base-sepolia', isGiven: false },
    ])
    const nested = listMembers('purchases.buy', { url: 'https://a.example', body: { tags: ['x', 'y'] } }, '')
    expect(nested.map(({ label, value }) => `${label}: ${value}`)).toEqual([
      'Address: https://a.example',
      'Body, tags, 1: x',
      'Body, tags, 2: y',
      'Method: GET',
      'Currency: USDC',
    ])
  })
})
