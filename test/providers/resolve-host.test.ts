/** Look-ups of untrusted host names, against a name server that answers some and ignores others. */
import { lookup } from 'node:dns/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createHostResolver } from '../../src/providers/resolve-host.ts'
import { startNameServer } from './name-server.ts'

describe('look-ups of untrusted host names', () => {
  const silent = Array.from({ length: 50 }, (_, index) => `silent-${index}.example.com`)
  let nameServer: Awaited<ReturnType<typeof startNameServer>>
  let servers: string[]
  beforeAll(async () => {
    nameServer = await startNameServer({
      'known.example.com': ['2001:db8::1', '93.184.216.34'],
      ...Object.fromEntries(silent.map((name) => [name, 'silent' as const])),
    })
    servers = nameServer.servers
  })
  afterAll(() => nameServer.close())

  it('return every address, IPv4 first', async () => {
    expect(await createHostResolver({ servers })('known.example.com')).toEqual([
      '93.184.216.34',
      '2001:db8::1',
    ])
  })

  it('reject an unknown name', async () => {
    await expect(createHostResolver({ servers })('unknown.example.com')).rejects.toThrow('ENOTFOUND')
  })

  it('time out, and do not delay our own look-ups meanwhile', async () => {
    const resolve = createHostResolver({ servers, timeoutMs: 600, maxAtOnce: 100 })
    const startedAt = performance.now()
    const lookups = Promise.allSettled(silent.map((name) => resolve(name)))
    await lookup('localhost')
    expect(performance.now() - startedAt).toBeLessThan(500)
    expect((await lookups).every(({ status }) => status === 'rejected')).toBe(true)
    expect(performance.now() - startedAt).toBeLessThan(1_500)
  })

  it('run a few at once, and start the next when one ends', async () => {
    const resolve = createHostResolver({ servers, timeoutMs: 300, maxAtOnce: 2 })
    const running = [resolve('silent-1.example.com'), resolve('silent-2.example.com')]
    await expect(resolve('known.example.com')).rejects.toThrow('too many host names')
    await Promise.allSettled(running)
    expect(await resolve('known.example.com')).toHaveLength(2)
  })

  it.each(['localhost', 'localhost.', 'postgres'])('reject the single label %s', async (host) => {
    await expect(createHostResolver({ servers })(host)).rejects.toThrow('not on the public internet')
  })
})
