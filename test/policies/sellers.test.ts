import { describe, expect, it } from 'vitest'
import { needsApproval } from '../../policies/approval.ts'
import { evaluate } from '../../policies/evaluate.ts'
import { loosenings } from '../../policies/loosening.ts'
import { type Policy, spendPolicy, storedPolicy } from '../../policies/policy.ts'
import { seller } from '../../policies/rules/seller.ts'
import type { SellerFacts, SpendFacts } from '../../policies/spend.ts'

const policyWith = (sellers?: object): Policy =>
  spendPolicy.parse({
    perTransaction: { max: '1' },
    dailyBudget: { max: '1' },
    categories: { allow: ['x402'] },
    ...(sellers === undefined ? {} : { sellers }),
  })

const facts = (origin: string | null): SpendFacts => ({
  category: 'x402',
  asset: 'USDC',
  usdMicros: 1n,
  chain: 'base-sepolia',
  counterparty: null,
  mcc: null,
  symbol: null,
  seller: origin === null ? null : buildSeller({ origin }),
})

function buildSeller(changes: Partial<SellerFacts> = {}): SellerFacts {
  return {
    origin: 'https://a.example.com',
    payTo: '0xa',
    price: '100',
    knownPayees: [],
    knownPrice: null,
    outcomes: null,
    ...changes,
  }
}

const isDenied = (sellers: object | undefined, origin: string | null) =>
  seller(policyWith(sellers), facts(origin)) !== undefined

describe('the sellers of a policy', () => {
  it('are origins, or every host below a domain; deny beats allow', () => {
    const wild = { allow: ['*.example.com'], deny: ['https://bad.example.com'] }
    expect(isDenied(wild, 'https://a.example.com')).toBe(false)
    expect(isDenied(wild, 'https://a.b.example.com:8443')).toBe(false)
    expect(isDenied(wild, 'https://bad.example.com')).toBe(true)
    for (const origin of ['https://example.com', 'https://notexample.com', 'http://a.example.com'])
      expect([origin, isDenied(wild, origin)]).toEqual([origin, true])
    expect(isDenied({ allow: ['https://a.example.com'] }, 'https://a.example.com:8443')).toBe(true)
    expect(isDenied({ deny: ['*.example.com'] }, 'https://a.example.com')).toBe(true)
    expect(isDenied({ allow: [] }, 'https://a.example.com')).toBe(true)
  })

  it('are denied at every port, unless the policy names one', () => {
    for (const [name, origin] of [
      ['https://evil.example', 'https://evil.example:8443'],
      ['https://8.8.8.8', 'https://8.8.8.8:8443'],
      ['https://[2001:4860:4860::8888]', 'https://[2001:4860:4860::8888]:8443'],
      ['http://localhost', 'http://127.0.0.1:1234'],
    ] as const) {
      expect([name, isDenied({ deny: [name] }, origin)]).toEqual([name, true])
      expect([name, isDenied({ allow: [name] }, origin)]).toEqual([name, true])
    }
    expect(isDenied({ deny: ['https://evil.example:8443'] }, 'https://evil.example')).toBe(false)
    expect(isDenied({ deny: ['https://evil.example:8443'] }, 'https://evil.example:8444')).toBe(false)
    expect(isDenied({ deny: ['https://evil.example'] }, 'https://good.evil.example:8443')).toBe(false)
  })

  it('have one name, however it was written', () => {
    for (const [written, name] of [
      ['https://evil.example:443', 'https://evil.example'],
      ['HTTPS://Evil.Example:', 'https://evil.example'],
      ['https://evil.example.', 'https://evil.example'],
      ['https://evil.example.:0443', 'https://evil.example'],
      ['https://evil.example.:8443', 'https://evil.example:8443'],
      ['https://bücher.example', 'https://xn--bcher-kva.example'],
      ['https://ｅｖｉｌ。example', 'https://evil.example'],
      ['https://%65vil.example', 'https://evil.example'],
      ['https://[2001:4860:4860:0:0:0:0:8888]', 'https://[2001:4860:4860::8888]'],
      ['https://[2001:4860:4860::0.0.136.136]:443', 'https://[2001:4860:4860::8888]'],
      ['https://0x08.8.8.010', 'https://8.8.8.8'],
      ['http://localhost:80', 'http://localhost'],
      ['*.Bücher.example.', '*.xn--bcher-kva.example'],
    ] as const) {
      expect(policyWith({ allow: [written], deny: [written] }).sellers).toEqual({
        allow: [name],
        deny: [name],
      })
      if (name.startsWith('*')) continue
      expect([written, isDenied({ deny: [written] }, name)]).toEqual([written, true])
      expect([written, isDenied({ allow: [written] }, name)]).toEqual([written, false])
    }
    expect(isDenied({ deny: ['*.bücher.example'] }, 'https://a.xn--bcher-kva.example')).toBe(true)
    for (const name of ['localhost', '127.0.0.1', '[::1]'])
      expect(isDenied({ deny: ['http://localhost:1234'] }, `http://${name}:1234`)).toBe(true)
    expect(isDenied({ deny: ['http://localhost:1234'] }, 'http://localhost:1235')).toBe(false)
  })

  it('sellers of older policies are read in the same form; a name that no URL can have matches none', () => {
    const { sellers: _, ...rest } = policyWith()
    const old = {
      ...rest,
      sellers: { deny: ['https://evil.example:443', 'http://evil.example', 'https://a:b'] },
    }
    const policy = storedPolicy.parse(old)
    expect(policy.sellers?.deny).toEqual(['https://evil.example', 'http://evil.example', 'https://a:b'])
    expect(seller(policy, facts('https://evil.example'))).toBeDefined()
    expect(seller(policy, facts('https://good.example'))).toBeUndefined()
  })

  it('limit nothing else', () => {
    expect(isDenied(undefined, 'https://a.example.com')).toBe(false)
    expect(isDenied({ allow: [] }, null)).toBe(false)
  })

  it('are checked, and widening them is loosening', () => {
    for (const name of [
      ...[
        'example.com',
        'https://a.example.com/path',
        '*.com',
        'ftp://a.example.com',
        'http://a.example.com',
      ],
      ...[
        'https://a.example.com\\b',
        'https://a..example.com',
        'https://a.example.com..',
        '*.8.8.8.8',
        '*.*.com',
      ],
      ...[
        'https://a.example.com:99999',
        'https://a:b@c.example',
        'https://[::1',
        'https://*.example.com',
        'https://.',
      ],
    ])
      expect(() => policyWith({ allow: [name] }), name).toThrow()
    expect(loosenings(policyWith({ allow: [] }), policyWith())).toEqual(['sellers'])
    expect(loosenings(policyWith(), policyWith({ allow: [] }))).toEqual([])
  })
})

describe('a seller with a past', () => {
  const seller = (changes: Partial<SellerFacts>) => ({
    ...facts('https://a.example.com'),
    seller: buildSeller(changes),
  })
  const rules = (changes: Partial<SellerFacts>, policy = policyWith()) =>
    evaluate(policy, seller(changes), new Date()).map(({ rule }) => rule)

  it('may not name another payee, nor raise its price by more than a tenth', () => {
    expect(rules({})).toEqual([])
    expect(rules({ knownPayees: ['0xb', '0xa'], knownPrice: '91' })).toEqual([])
    expect(rules({ knownPayees: ['0xb'] })).toEqual(['payee_changed'])
    expect(rules({ knownPrice: '90' })).toEqual(['price_changed'])
    expect(rules({ knownPayees: ['0xb'], knownPrice: '1' })).toEqual(['payee_changed', 'price_changed'])
    expect(rules({ price: '110', knownPrice: '100' })).toEqual([])
  })

  it('needs an approval instead, where the policy has approvals', () => {
    const asking: Policy = { ...policyWith(), approval: { above: '1', ttlSec: 60 } }
    expect(rules({ knownPayees: ['0xb'] }, asking)).toEqual([])
    expect(needsApproval(asking, 1n, buildSeller({ knownPayees: ['0xb'] }))).toBe(true)
    expect(needsApproval(asking, 1n, buildSeller({ knownPrice: '1' }))).toBe(true)
    expect(needsApproval(asking, 1n, buildSeller())).toBe(false)
    expect(needsApproval(policyWith(), 1n, buildSeller({ knownPrice: '1' }))).toBe(false)
  })
})

describe('a seller’s record', () => {
  const record = { minDelivered: { of: 10, ratio: 0.9 } } as const
  const judge = (outcomes: string | null, sellers: object, approval?: Policy['approval']) => {
    const policy: Policy = { ...policyWith(sellers), approval }
    const seller = buildSeller({ outcomes })
    const violations = evaluate(policy, { ...facts('https://a.example.com'), seller }, new Date())
    return {
      rules: violations.map(({ rule }) => rule),
      violations,
      isAsked: needsApproval(policy, 1n, seller),
    }
  }
  const above = { above: '1', ttlSec: 60 }

  it('must reach the ratio over the latest purchases, and nothing older', () => {
    expect(judge('1111111110', record).rules).toEqual([])
    expect(judge('1111111100', record).violations).toMatchObject([
      { rule: 'seller_record', limit: '0.9', used: '8', requested: '0.8' },
    ])
    expect(judge('1111111111000000', record).rules).toEqual([])
    expect(judge('0000000000111111111111', record).rules).toEqual(['seller_record'])
    expect(judge('1'.repeat(10), { minDelivered: { of: 10, ratio: 1 } }).rules).toEqual([])
  })

  it('is not judged where it was not read, nor where no policy asks for it', () => {
    expect(judge(null, { ...record, unknown: 'deny' }).rules).toEqual([])
    expect(judge('0000000000', {}).rules).toEqual([])
  })

  it('of too few purchases is allowed, asked about or denied', () => {
    expect(judge('111', record).rules).toEqual([])
    expect(judge('000', { ...record, unknown: 'allow' }).rules).toEqual([])
    expect(judge('111', { ...record, unknown: 'deny' }).violations).toMatchObject([
      { rule: 'seller_record', used: '3', requested: null },
    ])
    expect(judge('111', { ...record, unknown: 'ask' }).rules).toEqual(['seller_record'])
    expect(judge('111', { ...record, unknown: 'ask' }, above)).toMatchObject({ rules: [], isAsked: true })
    expect(judge('1111111111', { ...record, unknown: 'ask' }, above)).toMatchObject({
      rules: [],
      isAsked: false,
    })
    // A bad record is no unknown one: nobody is asked.
    expect(judge('0000000000', { ...record, unknown: 'ask' }, above).rules).toEqual(['seller_record'])
    expect(judge('', { unknown: 'deny' }).rules).toEqual(['seller_record'])
    expect(judge('0', { unknown: 'deny' }).rules).toEqual([])
  })
})
