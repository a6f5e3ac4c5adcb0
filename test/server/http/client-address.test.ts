import { describe, expect, it } from 'vitest'
import { findClientAddress, trustedProxyList } from '../../../src/server/http/client-address.ts'

const none = trustedProxyList([])
const proxies = trustedProxyList(['10.0.0.0/8', '2001:db8:f::/48', '127.0.0.1'])

describe('the client address', () => {
  it('is the peer’s address without trusted proxies, whatever X-Forwarded-For contains', () => {
    expect(findClientAddress('203.0.113.7', '198.51.100.1, 10.0.0.1', none)).toBe('203.0.113.7')
    expect(findClientAddress('203.0.113.7', undefined, none)).toBe('203.0.113.7')
  })

  it('is the peer’s address if the peer is not a trusted proxy', () => {
    expect(findClientAddress('203.0.113.7', '198.51.100.1', proxies)).toBe('203.0.113.7')
  })

  it('is the last hop that is not a trusted proxy', () => {
    expect(findClientAddress('10.0.0.1', '203.0.113.7', proxies)).toBe('203.0.113.7')
    expect(findClientAddress('10.0.0.1', '203.0.113.7, 10.9.9.9', proxies)).toBe('203.0.113.7')
    expect(findClientAddress('2001:db8:f::1', '203.0.113.7,2001:db8:f::2', proxies)).toBe('203.0.113.7')
  })

  it('is never a hop that the client wrote itself', () => {
    expect(findClientAddress('10.0.0.1', '1.1.1.1, 203.0.113.7', proxies)).toBe('203.0.113.7')
    expect(findClientAddress('10.0.0.1', '10.0.0.2, 203.0.113.7, 10.0.0.3', proxies)).toBe('203.0.113.7')
    expect(findClientAddress('10.0.0.1', '1.1.1.1, nonsense, 10.0.0.3', proxies)).toBe('10.0.0.3')
  })

  it.each(['', ' ', ',', 'unknown', '203.0.113.7:1234', '_hidden', '999.1.1.1'])(
    'is the proxy’s address if the proxy wrote %j',
    (forwardedFor) => {
      expect(findClientAddress('10.0.0.1', forwardedFor, proxies)).toBe('10.0.0.1')
    },
  )

  it('is the first hop if every hop is a trusted proxy', () => {
    expect(findClientAddress('10.0.0.1', '10.0.0.3, 10.0.0.2', proxies)).toBe('10.0.0.3')
  })

  it('is IPv4 when it was mapped into IPv6', () => {
    expect(findClientAddress('::ffff:203.0.113.7', undefined, none)).toBe('203.0.113.7')
    expect(findClientAddress('::FFFF:127.0.0.1', '::ffff:203.0.113.7', proxies)).toBe('203.0.113.7')
  })

  it('groups IPv6 by its /64, in any notation', () => {
    const same = [
      '2001:db8:0:1::1',
      '2001:DB8:0:1:ffff:ffff:ffff:ffff',
      '2001:0db8:0000:0001:0:0:0:2',
      '2001:db8:0:1::198.51.100.1',
    ]
    for (const address of same) expect(findClientAddress(address, undefined, none)).toBe('2001:db8:0:1::/64')
    expect(findClientAddress('2001:db8:0:2::1', undefined, none)).toBe('2001:db8:0:2::/64')
    expect(findClientAddress('2001:db8::1', undefined, none)).toBe('2001:db8:0:0::/64')
    expect(findClientAddress('::1', undefined, none)).toBe('0:0:0:0::/64')
    expect(findClientAddress('::', undefined, none)).toBe('0:0:0:0::/64')
    expect(findClientAddress('1::', undefined, none)).toBe('1:0:0:0::/64')
    expect(findClientAddress('fe80::1%eth0', undefined, none)).toBe('fe80:0:0:0::/64')
  })
})

describe('the list of trusted proxies', () => {
  it.each([
    'proxy.example',
    '10.0.0.0/',
    '10.0.0.0/abc',
    '10.0.0.0/33',
    '::/129',
    '10.0.0.0/8/8',
    '/8',
    '10.0.0',
  ])('rejects %s, naming it', (entry) => {
    expect(() => trustedProxyList(['127.0.0.1', entry])).toThrow(`"${entry}"`)
  })

  it('matches a range exactly up to its bounds', () => {
    const range = trustedProxyList(['192.0.2.0/30'])
    expect(findClientAddress('192.0.2.3', '203.0.113.7', range)).toBe('203.0.113.7')
    expect(findClientAddress('192.0.2.4', '203.0.113.7', range)).toBe('192.0.2.4')
  })
})
