import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { leasedRateLimiter, type WindowStore } from '../../src/providers/rate-limiter/leased.ts'

const opened = new Date('2026-11-20T12:00:00.000Z')
const limit = { count: 1_600, seconds: 60 }

/** A store with one window that is never full, and what it was asked. */
function countingStore() {
  const asked = { takes: 0, counts: 0 }
  const state = { isReachable: true }
  const store: WindowStore = {
    take: async (_key, _limit, _now, lease) => {
      if (!state.isReachable) throw new Error('unreachable')
      asked.takes += 1
      asked.counts += lease
      return { openedMs: opened.getTime(), count: asked.counts, taken: lease }
    },
    giveBack: async () => {},
    endLease: async (_key, _limit, { openedAt, counts }) => {
      expect(openedAt).toEqual(opened)
      asked.counts -= counts
    },
  }
  const fail = () => {
    state.isReachable = false
  }
  return { asked, store, fail }
}

describe('a leased rate limit', () => {
  beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] }))
  afterEach(() => void vi.useRealTimers())

  it('asks the store for few of many requests, and returns the rest after a second', async () => {
    const { asked, store } = countingStore()
    const limiter = leasedRateLimiter(store)
    for (let sent = 1; sent <= 500; sent += 1)
      expect((await limiter.take('key', limit, opened)).remaining).toBe(limit.count - sent)
    expect(asked.takes).toBeLessThan(15)
    expect(asked.counts).toBeGreaterThan(500)
    await vi.advanceTimersByTimeAsync(2_000)
    expect(asked.counts).toBe(500)
  })

  it('asks for each request of a client that sends few', async () => {
    const { asked, store } = countingStore()
    const limiter = leasedRateLimiter(store)
    for (let sent = 1; sent <= 12; sent += 1) {
      await limiter.take('key', limit, opened)
      expect(asked).toEqual({ takes: sent, counts: sent })
      await vi.advanceTimersByTimeAsync(400)
    }
  })

  it('asks for each request of a small limit', async () => {
    const { asked, store } = countingStore()
    const limiter = leasedRateLimiter(store)
    for (let sent = 0; sent < 30; sent += 1) await limiter.take('key', { count: 31, seconds: 60 }, opened)
    expect(asked).toEqual({ takes: 30, counts: 30 })
  })

  it('uses no lease of a window that has ended, of another limit or of a later time', async () => {
    const { asked, store } = countingStore()
    const limiter = leasedRateLimiter(store)
    const fill = async () => {
      for (let sent = 0; sent < 10; sent += 1) await limiter.take('key', limit, opened)
    }
    for (const [other, now] of [
      [limit, new Date(opened.getTime() + 60_000)],
      [limit, new Date(opened.getTime() - 1)],
      [{ ...limit, count: 1_000 }, opened],
    ] as const) {
      await fill()
      const before = asked.takes
      await limiter.take('key', other, now)
      expect(asked.takes).toBe(before + 1)
    }
  })

  it('refuses no request within the limit, however many come at once, and the first beyond it', async () => {
    const small = { count: 150, seconds: 60 }
    let count = 0
    const limiter = leasedRateLimiter({
      take: async (_key, { count: most }, _now, lease) => {
        const taken = count > 0 && count + lease <= most / 2 ? lease : 1
        count = Math.min(count, most + 1) + taken
        await Promise.resolve()
        return { openedMs: opened.getTime(), count, taken }
      },
      giveBack: async () => {},
      endLease: async (_key, { count: most }, { counts }) => {
        if (count <= most) count -= counts
      },
    })
    const take = () => limiter.take('key', small, opened)
    for (let sent = 0; sent < 10; sent += 1) expect((await take()).allowed).toBe(true)
    const verdicts = await Promise.all(Array.from({ length: 140 }, take))
    expect(verdicts.filter(({ allowed }) => !allowed)).toEqual([])
    expect(await take()).toEqual({ allowed: false, remaining: 0, resetSeconds: 60 })
  })

  it('asks for each request of a long window', async () => {
    const { asked, store } = countingStore()
    const limiter = leasedRateLimiter(store)
    for (let sent = 0; sent < 30; sent += 1) await limiter.take('key', { ...limit, seconds: 86_400 }, opened)
    expect(asked).toEqual({ takes: 30, counts: 30 })
  })

  it('returns what is leased when it closes, and throws once an unreachable store is asked', async () => {
    const { asked, store, fail } = countingStore()
    const limiter = leasedRateLimiter(store)
    for (let sent = 0; sent < 10; sent += 1) await limiter.take('key', limit, opened)
    await limiter.close()
    expect(asked.counts).toBe(10)
    fail()
    await expect(limiter.take('key', limit, opened)).rejects.toThrow('unreachable')
  })
})
