import { describe, expect, it } from 'vitest'
import { systemClock } from '../../../src/core/base/clock.ts'
import { randomDigits, randomToken } from '../../../src/core/base/ids.ts'
import { usePorts } from '../../../src/core/base/ports.ts'
import { systemRandom } from '../../../src/core/base/random.ts'
import { systemTimers, timers } from '../../../src/core/base/timers.ts'
import { nextTurn } from '../../../src/core/base/turn.ts'

const noon = new Date('2026-11-20T12:00:00Z')

describe('usePorts', () => {
  it('replaces time and randomness for all users, until it is undone', async () => {
    const undo = usePorts({
      timers: {
        ...systemTimers,
        monotonic: () => 7,
        sleep: async () => {},
        soon: queueMicrotask,
      },
      random: { ...systemRandom, bytes: (length) => Buffer.alloc(length, 1), below: () => 3 },
      clock: () => noon,
    })
    try {
      expect(timers.monotonic()).toBe(7)
      await timers.sleep(86_400_000)
      await nextTurn()
      expect(randomToken(3)).toBe('AQEB')
      expect(randomDigits(4)).toBe('3333')
      expect(systemClock()).toBe(noon)
    } finally {
      undo()
    }
    expect(timers.monotonic()).toBeGreaterThan(7)
    expect(systemClock()).not.toBe(noon)
    expect(randomToken(12)).not.toBe(randomToken(12))
  })

  it('keeps the ports that are not given', () => {
    const undo = usePorts({ clock: () => noon })
    try {
      expect(timers.monotonic()).toBeGreaterThan(0)
      expect(randomToken(12)).not.toBe(randomToken(12))
    } finally {
      undo()
    }
    expect(systemClock()).not.toBe(noon)
  })
})
