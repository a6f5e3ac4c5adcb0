import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { installTimers, systemTimers } from '../../../src/core/base/timers.ts'
import { createDueRounds } from '../../../src/server/jobs/run-schedules.ts'

const { signal } = new AbortController()

describe('the rounds of scheduled calls', () => {
  const time = { now: 0 }
  beforeEach(() => {
    time.now = 0
    installTimers({ ...systemTimers, monotonic: () => time.now })
  })
  afterEach(() => {
    installTimers(systemTimers)
  })
  /** Rounds on one due time, in monotonic milliseconds. */
  const followed = (dueAt: number) => {
    const seen = { dueAt, activeAt: -1, reads: 0, runs: 0, isDown: false }
    const round = createDueRounds({
      findWaitMs: async () => {
        seen.reads += 1
        if (seen.isDown) throw new Error('there is no connection')
        return seen.dueAt - time.now
      },
      runDue: async () => {
        seen.runs += 1
        seen.dueAt = Number.POSITIVE_INFINITY
        return 1
      },
      lastActivity: () => seen.activeAt,
    })
    return { seen, runAt: (at: number) => Object.assign(time, { now: at }) && round(signal) }
  }

  it('make the calls at the due time, and read nothing until then', async () => {
    const { seen, runAt } = followed(10_000)
    for (let at = 0; at < 10_000; at += 1_000) expect(await runAt(at)).toBe(0)
    expect(seen).toMatchObject({ reads: 1, runs: 0 })
    expect(await runAt(10_000)).toBe(1)
    expect(seen).toMatchObject({ reads: 2, runs: 1 })
  })

  it('read again after the calls that were due, and after any activity', async () => {
    const { seen, runAt } = followed(0)
    expect(await runAt(0)).toBe(1)
    seen.dueAt = 2_000
    await runAt(1_000)
    expect(await runAt(2_000)).toBe(1)
    await runAt(3_000)
    const { reads } = seen
    Object.assign(seen, { dueAt: 4_500, activeAt: 3_500 })
    await runAt(4_000)
    expect(seen.reads).toBe(reads + 1)
    expect(await runAt(5_000)).toBe(1)
  })

  it('find a due time whose announcement was lost within twenty seconds', async () => {
    const { seen, runAt } = followed(Number.POSITIVE_INFINITY)
    await runAt(0)
    seen.dueAt = 5_000
    for (let at = 1_000; at < 20_000; at += 1_000) expect(await runAt(at)).toBe(0)
    expect(await runAt(20_000)).toBe(1)
  })

  it('read in the next round when a read failed', async () => {
    const { seen, runAt } = followed(5_000)
    seen.isDown = true
    await expect(runAt(4_000)).rejects.toThrow('no connection')
    seen.isDown = false
    expect(await runAt(5_000)).toBe(1)
  })
})
