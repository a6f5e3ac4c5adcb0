import { setTimeout as pause } from 'node:timers/promises'
import { describe, expect, it, vi } from 'vitest'
import { silentLog } from '../../../src/core/base/log.ts'
import { every } from '../../../src/server/jobs/every.ts'
import { createPace } from '../../../src/server/jobs/pace.ts'

/** A pace with a clock that the test sets, in milliseconds. */
function paceAt(start = 0) {
  const time = { now: start }
  let announcements = 0
  const announce = () => {
    announcements += 1
  }
  const pace = createPace({ announce, now: () => time.now }, { activeMs: 1_000, restMs: 3_600_000 })
  return { pace, time, announcements: () => announcements }
}

describe('the pace of jobs', () => {
  it('is the interval of each job after a start, and a sweep at rest', async () => {
    const { pace, time } = paceAt()
    const { signal } = new AbortController()
    expect(await pace.wait(1, signal)).toBe(true)
    time.now = 1_000
    const resting = pace.wait(1, signal).then(() => 'woken')
    expect(await Promise.race([resting, pause(50, 'resting')])).toBe('resting')
    pace.noteActivity()
    expect(await resting).toBe('woken')
  })

  it('pauses longer the longer nothing has happened, until something does', async () => {
    const { pace, time } = paceAt()
    const { signal } = new AbortController()
    // Pauses end at powers of 1.25 milliseconds: this one at 517.
    time.now = 414
    const startedAt = performance.now()
    expect(await pace.wait(1, signal)).toBe(true)
    expect(performance.now() - startedAt).toBeGreaterThan(90)
    time.now = 810
    const pausing = pace.wait(1, signal).then(() => 'woken')
    expect(await Promise.race([pausing, pause(50, 'pausing')])).toBe('pausing')
    pace.noteActivity()
    expect(await pausing).toBe('woken')
    // Work that is found at once is followed at the interval of its job.
    expect(await Promise.race([pace.wait(1, signal), pause(500, 'late')])).toBe(true)
  })

  it('ends the pauses of jobs that began apart together', async () => {
    const { pace, time } = paceAt()
    const { signal } = new AbortController()
    const ends: number[] = []
    const follow = async () => {
      expect(await pace.wait(1, signal)).toBe(true)
      ends.push(performance.now())
    }
    time.now = 414
    const startedAt = performance.now()
    const early = follow()
    await pause(50)
    time.now += performance.now() - startedAt
    await Promise.all([early, follow()])
    expect(Math.abs((ends[0] ?? 0) - (ends[1] ?? 0))).toBeLessThan(40)
  })

  it('ends a rest at once when the job stops', async () => {
    const { pace, time } = paceAt()
    time.now = 1_000
    const stopping = new AbortController()
    const resting = pace.wait(1, stopping.signal)
    stopping.abort()
    expect(await resting).toBe(false)
    expect(await pace.wait(1, stopping.signal)).toBe(false)
  })

  it('announces writes to other gateways, at most once in a quarter of a second, and never their own announcements', async () => {
    const { pace, time, announcements } = paceAt()
    pace.noteActivity()
    expect(announcements()).toBe(0)
    for (let write = 0; write < 100; write += 1) pace.noteWrite()
    // The last of them is announced, too.
    expect(announcements()).toBe(1)
    await vi.waitFor(() => expect(announcements()).toBe(2))
    time.now = 10_000
    pace.noteWrite()
    expect(announcements()).toBe(3)
  })

  it('stays active while a job finds open work', async () => {
    const { pace, time } = paceAt()
    let open = 5
    let rounds = 0
    const round = async () => {
      rounds += 1
      time.now += 999
      open = Math.max(0, open - 1)
      return open
    }
    const job = every(1, { name: 'test', round, log: silentLog, pace })
    while (open > 0) await pause(1)
    await pause(50)
    const roundsAtRest = rounds
    await pause(50)
    expect(rounds).toBe(roundsAtRest)
    expect(rounds).toBeLessThan(9)
    await job.stop()
  })
})
