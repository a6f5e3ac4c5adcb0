import { describe, expect, it } from 'vitest'
import { silentLog } from '../../src/core/base/log.ts'
import {
  countRequest,
  type RateReading,
  requireWithinLimit,
  takeBudgets,
  takeSponsorship,
} from '../../src/kernel/gates/rate.ts'
import { createMemoryRateLimiter } from '../../src/providers/rate-limiter/memory.ts'
import { createRedisRateLimiter } from '../../src/providers/rate-limiter/redis.ts'
import { noon } from './scene.ts'

const settings = {
  mode: 'sandbox',
  origin: 'https://bursar.example',
  fxPrice: { asset: 'USDC', units: 1n },
  x402PayTo: '0x23618e81E3f5cdF7f54C3d65f7FBc0aBf5B21E8f',
  trustedProxies: [],
  rateLimits: new Map([['mutations', { count: 2, seconds: 60 }]]),
  sessionKey: new Uint8Array(),
} as const
const request = { rateClass: 'mutations', client: '203.0.113.7', now: noon, failClosed: true }
const later = (seconds: number) => new Date(noon.getTime() + seconds * 1000)

describe('the rate gate', () => {
  it('counts down, then rejects with the whole seconds to wait', async () => {
    const services = { settings, rateLimiter: createMemoryRateLimiter(), log: silentLog }
    const readings: (RateReading | null)[] = []
    for (const seconds of [0, 1, 1.5, 2])
      readings.push(await countRequest(services, { ...request, now: later(seconds) }))
    expect(readings).toEqual([
      expect.objectContaining({ allowed: true, remaining: 1, resetSeconds: 60, count: 2, seconds: 60 }),
      expect.objectContaining({ allowed: true, remaining: 0, resetSeconds: 59 }),
      expect.objectContaining({ allowed: false, remaining: 0, resetSeconds: 59, rateClass: 'mutations' }),
      expect.objectContaining({ allowed: false, remaining: 0, resetSeconds: 60 }),
    ])
    const [first, , third] = readings
    if (first === undefined || first === null || third === undefined || third === null)
      throw new Error('no reading')
    expect(() => requireWithinLimit(first)).not.toThrow()
    expect(() => requireWithinLimit(third)).toThrow(
      expect.objectContaining({ code: 'rate_limited', members: expect.objectContaining({ retryAfter: 59 }) }),
    )
    expect(await countRequest(services, { ...request, now: later(62) })).toMatchObject({ allowed: true })
  })

  it('separates clients and classes', async () => {
    const services = { settings, rateLimiter: createMemoryRateLimiter(), log: silentLog }
    for (const client of ['a', 'b', 'a', 'b'])
      expect(await countRequest(services, { ...request, client })).toMatchObject({ allowed: true })
    expect(await countRequest(services, { ...request, client: 'a' })).toMatchObject({ allowed: false })
  })

  it('admits a class without a limit', async () => {
    const services = { settings, rateLimiter: createMemoryRateLimiter(), log: silentLog }
    expect(await countRequest(services, { ...request, rateClass: 'unlimited' })).toBeNull()
  })

  it('counts sponsored operations of keys apart from those of their owner, and refunds what is refused', async () => {
    const rateLimits = new Map([
      ['sponsored', { count: 2, seconds: 86_400 }],
      ['mutations', { count: 1, seconds: 60 }],
    ])
    const services = {
      settings: { ...settings, rateLimits },
      rateLimiter: createMemoryRateLimiter(),
      log: silentLog,
    }
    const windows = (kind: 'key' | 'session') => ({ kind, account: { id: 'acct_1' } })
    const context = { ...services, chain: { isGasFree: false } }
    for (let count = 0; count < 2; count += 1) await takeSponsorship(context, windows('key'), noon)
    await expect(takeSponsorship(context, windows('key'), noon)).rejects.toMatchObject({
      code: 'rate_limited',
    })
    await expect(takeSponsorship(context, windows('session'), noon)).resolves.toBeUndefined()

    const budgets = ['sponsored', 'mutations'].map((rateClass) => ({ rateClass, client: 'b', endsAt: null }))
    await takeBudgets(services, budgets, noon)
    for (let count = 0; count < 5; count += 1)
      await expect(takeBudgets(services, budgets, noon)).rejects.toMatchObject({ code: 'rate_limited' })
    expect(await countRequest(services, { ...request, rateClass: 'sponsored', client: 'b' })).toMatchObject({
      remaining: 0,
      allowed: true,
    })
  })

  it('fails closed for spends and open for reads while the store is unavailable, and logs it', async () => {
    const rateLimiter = createRedisRateLimiter('redis://127.0.0.1:9')
    const logged: string[] = []
    const log = { ...silentLog, error: (_facts: object, message: string) => void logged.push(message) }
    const services = { settings, rateLimiter, log }
    await expect(countRequest(services, request)).rejects.toMatchObject({
      code: 'provider_unavailable',
      members: { retryAfter: expect.any(Number) },
    })
    expect(await countRequest(services, { ...request, failClosed: false })).toBeNull()
    expect(logged).toHaveLength(2)
    await rateLimiter.close()
  })
})
