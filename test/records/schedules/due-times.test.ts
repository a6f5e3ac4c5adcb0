/** Due times by the calendar: clock changes, month ends, weekdays, and starts in the middle of them. */
import { describe, expect, it } from 'vitest'
import {
  findDueTime,
  findIndex,
  findStartDay,
  isTimeZone,
  type Recurrence,
} from '../../../src/records/schedules/due-times.ts'

const rule = (changes: Partial<Recurrence> & { readonly start: string }): Recurrence => {
  const { start, ...others } = changes
  const given = { unit: 'day', step: 1, tz: 'UTC', startsAt: new Date(start), ...others } as const
  return { on: findStartDay(given), ...given }
}
const times = (recurrence: Recurrence, count: number) =>
  Array.from({ length: count }, (_, index) =>
    findDueTime(recurrence, index).toISOString().replace(':00.000Z', ''),
  )

describe('due times', () => {
  it.each([
    [
      'the last day of months that have no 31st',
      rule({ unit: 'month', start: '2027-01-31T09:00Z' }),
      ['2027-01-31T09:00', '2027-02-28T09:00', '2027-03-31T09:00', '2027-04-30T09:00', '2027-05-31T09:00'],
    ],
    [
      'the leap day',
      rule({ unit: 'month', on: 30, start: '2028-01-31T00:00Z' }),
      ['2028-02-29T00:00', '2028-03-30T00:00', '2028-04-30T00:00'],
    ],
    [
      'every second month on a day that is later in the first',
      rule({ unit: 'month', step: 2, on: 31, start: '2026-11-10T12:00Z' }),
      ['2026-11-30T12:00', '2027-01-31T12:00', '2027-03-31T12:00'],
    ],
    [
      'the next month for a day that has passed',
      rule({ unit: 'month', on: 1, start: '2026-12-15T08:30Z' }),
      ['2027-01-01T08:30', '2027-02-01T08:30'],
    ],
    [
      'weekdays, from the first one',
      rule({ unit: 'week', on: 1, start: '2026-11-27T10:00Z' }),
      ['2026-11-30T10:00', '2026-12-07T10:00'],
    ],
    [
      'every second week on the day of the start',
      rule({ unit: 'week', step: 2, start: '2026-11-27T10:00Z' }),
      ['2026-11-27T10:00', '2026-12-11T10:00'],
    ],
    [
      'the wall clock over the start of summer time, which skips 02:30',
      rule({ tz: 'Europe/Berlin', start: '2027-03-27T01:30Z' }),
      ['2027-03-27T01:30', '2027-03-28T01:30', '2027-03-29T00:30'],
    ],
    [
      'the wall clock over the end of summer time, whose 02:30 comes twice: the first',
      rule({ tz: 'Europe/Berlin', start: '2026-10-24T00:30Z' }),
      ['2026-10-24T00:30', '2026-10-25T00:30', '2026-10-26T01:30'],
    ],
    [
      'the day of the zone, not of UTC',
      rule({ unit: 'month', on: 1, tz: 'Pacific/Kiritimati', start: '2026-11-30T11:00Z' }),
      ['2026-11-30T11:00', '2026-12-31T11:00'],
    ],
  ])('are %s', (_name, recurrence, expected) => {
    expect(times(recurrence, expected.length)).toEqual(expected)
  })

  it.each(['day', 'week', 'month'] as const)(
    'start with the first that is not before the start, and rise, by the %s',
    (unit) => {
      for (const step of [1, 2, 5])
        for (const tz of ['UTC', 'America/New_York', 'Asia/Kathmandu', 'Australia/Lord_Howe'])
          for (const start of ['2026-10-31T23:59:59Z', '2027-01-31T02:30Z', '2028-02-29T12:00Z']) {
            const recurrence = rule({ unit, step, tz, start })
            const all = Array.from({ length: 60 }, (_, index) => findDueTime(recurrence, index).getTime())
            expect(all[0]).toBe(new Date(start).getTime())
            expect([...all].sort((one, other) => one - other)).toEqual(all)
            expect(new Set(all).size).toBe(60)
            for (const [index, time] of all.entries()) {
              expect(findIndex(recurrence, new Date(time))).toBe(index)
              expect(findIndex(recurrence, new Date(time), { isAfter: true })).toBe(index + 1)
              expect(findIndex(recurrence, new Date(time - 1))).toBe(index)
            }
          }
    },
  )

  it('know time zones by name', () => {
    expect(['UTC', 'Europe/Berlin'].map(isTimeZone)).toEqual([true, true])
    expect(['Mars/Base', '', 'local'].map(isTimeZone)).toEqual([false, false, false])
  })
})
