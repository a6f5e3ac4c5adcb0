import { describe, expect, it } from 'vitest'
import { fetchPublic, isPublicAddress } from '../../../src/http/authorization-server/fetch-public.ts'

describe('client metadata documents', () => {
  it.each([
    ['127.0.0.1', false],
    ['10.1.2.3', false],
    ['172.31.255.255', false],
    ['172.32.0.1', true],
    ['192.168.1.1', false],
    ['169.254.169.254', false],
    ['100.64.0.1', false],
    ['0.0.0.0', false],
    ['224.0.0.1', false],
    ['255.255.255.255', false],
    ['93.184.216.34', true],
    ['::1', false],
    ['fe80::1', false],
    ['fd00::1', false],
    ['::ffff:127.0.0.1', false],
    ['64:ff9b::7f00:1', false],
    ['2002:7f00:1::', false],
    ['2606:2800:220:1:248:1893:25c8:1946', true],
    ['not an address', false],
  ])('%s is public: %s', (address, isPublic) => {
    expect(isPublicAddress(address)).toBe(isPublic)
  })

  it.each([
    'http://example.com/client.json',
    'https://127.0.0.1/client.json',
    'https://[::1]/client.json',
    'https://2130706433/client.json',
    'file:///etc/passwd',
  ])('are not fetched from %s', async (url) => {
    await expect(fetchPublic(url)).rejects.toThrow('only https')
  })

  it('are not fetched from a name that resolves to a private address', async () => {
    await expect(fetchPublic('https://localhost/client.json')).rejects.toThrow('not on the public internet')
  })
})
