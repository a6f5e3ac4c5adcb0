import { describe, expect, it } from 'vitest'
import { parseRateLimit, rateClasses } from '../../policies/rate-classes.ts'
import { isScope, moneyScopes, needsPolicy, scopes } from '../../policies/scopes.ts'

describe('scopes', () => {
  it('are a closed list, each with a description', () => {
    expect(isScope('wallets:transfer')).toBe(true)
    expect(isScope('wallets:*')).toBe(false)
    expect(isScope('toString')).toBe(false)
    for (const text of Object.values(scopes)) expect(text).toMatch(/^[A-Z].+\.$/)
  })

  it('need a policy if they can move money', () => {
    for (const scope of moneyScopes) expect(needsPolicy(['wallets:read', scope])).toBe(true)
    expect(needsPolicy(['wallets:read', 'swaps:quote'])).toBe(false)
  })
})

describe('rate classes', () => {
  it('have the contract’s defaults under the names of its variables', () => {
    const stated = Object.values(rateClasses).map(({ env, count, seconds }) => `${env}=${count}/${seconds}`)
    expect(stated).toEqual([
      'RATE_MUTATIONS=150/60',
      // One key, and one account, over all addresses: four and eight times the mutations of one address.
      'RATE_KEY=600/60',
      'RATE_ACCOUNT=1200/60',
      // What stops money, by session or key.
      'RATE_STOPS=150/60',
      'RATE_GASLESS=12/60',
      'RATE_RAILS=60/60',
      'RATE_REVEALS=10/60',
      'RATE_DEVICES=20/600',
      'RATE_FEEDBACK=10/60',
      'RATE_PAY_PAGES=60/60',
      'RATE_FX=300/60',
      'RATE_FUNDING=1/3600',
      'RATE_GUESTS=1000/3600',
      'RATE_AUTHORIZATIONS=120/60',
      'RATE_REGISTRATIONS=100/3600',
      'RATE_SPONSORED=1000/86400',
      'RATE_OTP_RESEND=1/60',
      'RATE_OTP_DESTINATION=5/3600',
      'RATE_OTP_IP=5/3600',
      'RATE_OTP_COUNTRY=500/86400',
      'RATE_OTP_TOTAL=5000/86400',
      // Messages of one kind to an address, whatever causes them.
      'RATE_MESSAGES=10/3600',
      'RATE_RECOVERY=5/3600',
    ])
  })

  it('are parsed from count/seconds only', () => {
    expect(parseRateLimit('150/60')).toEqual({ count: 150, seconds: 60 })
    expect(parseRateLimit(' 1/9999999 ')).toEqual({ count: 1, seconds: 9_999_999 })
    expect(parseRateLimit('9999999/1')).toEqual({ count: 9_999_999, seconds: 1 })
    for (const text of [
      '1/99999999',
      '01/1',
      '1/01',
      'x1/1',
      '1/1x',
      '1x/1',
      '1/x1',
      '',
      '150',
      '0/60',
      '150/0',
      '-1/60',
      '1.5/60',
      '1e2/60',
      '150/60/1',
      '99999999/1',
    ])
      expect(parseRateLimit(text)).toBeUndefined()
  })
})
