import { describe, expect, it } from 'vitest'
import { createSharedClock } from '../../src/storage/shared-clock.ts'

const HOUR = 3_600_000

/** A database whose clock differs from this machine's by an offset. */
function clockOff(offMs: () => number | 'gone') {
  return {
    call: async <Row>() => {
      const off = offMs()
      if (off === 'gone') throw new Error('gone')
      // The caller determines its statement's result type.
      return [{ now: new Date(Date.now() + off) }] as Row[]
    },
  }
}
const own = () => new Date()
const measureOffset = (clock: () => Date) => clock().getTime() - Date.now()

describe('the shared clock of gateways', () => {
  it('follows the database’s, and logs a difference from the machine’s', async () => {
    const warned: unknown[] = []
    const log = { warn: (facts: object) => void warned.push(facts) }
    const { clock } = await createSharedClock(
      clockOff(() => HOUR),
      { own, log },
    )
    expect(Math.abs(measureOffset(clock) - HOUR)).toBeLessThan(200)
    expect(warned).toEqual([{ offSeconds: -3600 }])
  })

  it('follows steps of the database’s clock, and continues while it is unavailable', async () => {
    let off: number | 'gone' = 0
    const log = { warn: () => {} }
    const { clock, set } = await createSharedClock(
      clockOff(() => off),
      { own, log },
    )
    expect(Math.abs(measureOffset(clock))).toBeLessThan(200)
    off = -HOUR
    await set()
    expect(Math.abs(measureOffset(clock) + HOUR)).toBeLessThan(200)
    off = 'gone'
    await expect(set()).rejects.toThrow('gone')
    expect(Math.abs(measureOffset(clock) + HOUR)).toBeLessThan(200)
  })

  it('does not go back by the latency of a query', async () => {
    const { clock, set } = await createSharedClock(
      clockOff(() => 0),
      { own, log: { warn: () => {} } },
    )
    let last = clock()
    for (let round = 0; round < 200; round += 1) {
      await set()
      const now = clock()
      expect(now.getTime()).toBeGreaterThanOrEqual(last.getTime() - 1)
      last = now
    }
  })
})
