import { describe, expect, it } from 'vitest'
import { createPastCalendar, plainCalendar } from '../../../src/records/statements/past-calendar.ts'

const at = (text: string) => new Date(`2026-11-${text}Z`)
const HOUR_MS = 3_600_000

describe('the past of the calendar', () => {
  // Ahead by 2 h from 10:00 on, and by 26 h from 11:00 on.
  const calendar = createPastCalendar([
    { at: at('01T10:00:00'), aheadMs: 2 * HOUR_MS },
    { at: at('01T11:00:00'), aheadMs: 26 * HOUR_MS },
  ])

  it('shows each moment as the calendar showed it', () => {
    const shown = ['01T09:59:59', '01T10:00:00', '01T10:59:59', '01T11:00:00'].map((text) =>
      calendar.onCalendar(at(text)),
    )
    expect(shown).toEqual(['01T09:59:59', '01T12:00:00', '01T12:59:59', '02T13:00:00'].map(at))
  })

  it('finds the moment of each time, and for times that were jumped over that of the jump', () => {
    const found = ['01T09:00:00', '01T11:30:00', '01T12:30:00', '02T00:00:00', '02T14:00:00'].map((text) =>
      calendar.onClock(at(text)),
    )
    expect(found).toEqual(['01T09:00:00', '01T10:00:00', '01T10:30:00', '01T11:00:00', '01T12:00:00'].map(at))
  })

  it('has every moment in the one period whose times the calendar showed', () => {
    const bounds = Array.from(
      { length: 60 },
      (_, hour) => new Date(at('01T00:00:00').getTime() + hour * HOUR_MS),
    )
    for (let minute = 0; minute < 36 * 60; minute += 7) {
      const moment = new Date(at('01T00:00:00').getTime() + minute * 60_000)
      const shown = calendar.onCalendar(moment)
      const periods = bounds.filter((from, index) => {
        const to = bounds[index + 1] ?? new Date(8.64e15)
        return moment >= calendar.onClock(from) && moment < calendar.onClock(to)
      })
      expect(periods).toEqual([bounds.findLast((from) => from <= shown)])
    }
  })

  it('takes a step that another clock noted earlier as one of that moment', () => {
    const uneven = createPastCalendar([
      { at: at('01T10:00:01'), aheadMs: HOUR_MS },
      { at: at('01T10:00:00'), aheadMs: 2 * HOUR_MS },
    ])
    expect(uneven.onCalendar(at('01T10:00:00'))).toEqual(at('01T10:00:00'))
    expect(uneven.onCalendar(at('01T10:00:01'))).toEqual(at('01T12:00:01'))
  })

  it('is the clock where it was never set ahead', () => {
    const [none, time] = [createPastCalendar([]), at('05T05:05:05')]
    for (const { onCalendar, onClock } of [none, plainCalendar])
      expect([onCalendar(time), onClock(time)]).toEqual([time, time])
  })
})
