import { afterEach, describe, expect, it, vi } from 'vitest'
import { timers } from '../../../src/core/base/timers.ts'

afterEach(() => void vi.useRealTimers())

describe('sleep', () => {
  it('resolves after the time', async () => {
    const startedAt = timers.monotonic()
    await timers.sleep(20)
    // Node counts in whole milliseconds of its loop.
    expect(timers.monotonic() - startedAt).toBeGreaterThan(18)
  })

  it('rejects with an AbortError when its signal is aborted, before or meanwhile', async () => {
    const ending = new AbortController()
    const sleeping = timers.sleep(60_000, { signal: ending.signal })
    ending.abort()
    await expect(sleeping).rejects.toMatchObject({ name: 'AbortError', code: 'ABORT_ERR' })
    await expect(timers.sleep(60_000, { signal: ending.signal })).rejects.toMatchObject({
      name: 'AbortError',
    })
  })
})

describe('after and every', () => {
  it('run once and repeatedly, until they are canceled', () => {
    vi.useFakeTimers()
    const seen: string[] = []
    timers.after(10, () => seen.push('once'))
    timers.after(20, () => seen.push('never'))()
    const cancel = timers.every(10, () => seen.push('again'))
    vi.advanceTimersByTime(30)
    cancel()
    vi.advanceTimersByTime(30)
    expect(seen).toEqual(['once', 'again', 'again', 'again'])
  })

  it.each([{ isIdle: true }, { isIdle: false }])(
    'keep the process alive unless idle ($isIdle)',
    ({ isIdle }) => {
      const count = () => process.getActiveResourcesInfo().filter((kind) => kind === 'Timeout').length
      const before = count()
      const cancels = [timers.after(60_000, () => {}, { isIdle }), timers.every(60_000, () => {}, { isIdle })]
      expect(count() - before).toBe(isIdle ? 0 : 2)
      for (const cancel of cancels) cancel()
      expect(count()).toBe(before)
    },
  )
})

describe('soon', () => {
  it('runs the work after all pending promises', async () => {
    const seen: string[] = []
    const ran = new Promise<void>((resolve) => timers.soon(() => resolve(void seen.push('soon'))))
    void Promise.resolve().then(() => seen.push('promise'))
    await ran
    expect(seen).toEqual(['promise', 'soon'])
  })
})

describe('deadline', () => {
  it('aborts with a TimeoutError after the time', async () => {
    const signal = timers.deadline(10)
    expect(signal.aborted).toBe(false)
    await new Promise((resolve) => signal.addEventListener('abort', resolve))
    expect(signal.reason).toMatchObject({ name: 'TimeoutError' })
  })
})
