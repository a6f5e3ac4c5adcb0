import { describe, expect, it } from 'vitest'
import { isWithin, nextOpening, timeWindow, windowText } from '../../policies/time-windows.ts'

const buildWindow = (days: string[], start: string, end: string, tz = 'UTC') =>
  timeWindow.parse({ days, start, end, tz })
const at = (text: string) => new Date(text)

describe('a time window', () => {
  // 2026-11-20 is a Friday.
  it('is open on its days, from its start until just before its end', () => {
    const office = buildWindow(['mon', 'fri'], '09:00', '17:00')
    for (const [moment, isOpen] of [
      ['2026-11-20T08:59:59.999Z', false],
      ['2026-11-20T09:00:00Z', true],
      ['2026-11-20T16:59:59.999Z', true],
      ['2026-11-20T17:00:00Z', false],
      ['2026-11-21T12:00:00Z', false],
      ['2026-11-23T12:00:00Z', true],
    ] as const)
      expect([moment, isWithin(office, at(moment))]).toEqual([moment, isOpen])
  })

  it('opens and closes at minutes', () => {
    const window = buildWindow(['fri'], '09:30', '10:45')
    for (const [moment, isOpen] of [
      ['2026-11-20T09:29:59Z', false],
      ['2026-11-20T09:30:00Z', true],
      ['2026-11-20T10:44:59Z', true],
      ['2026-11-20T10:45:00Z', false],
    ] as const)
      expect([moment, isWithin(window, at(moment))]).toEqual([moment, isOpen])
    expect(nextOpening([window], at('2026-11-20T08:00:00Z'))).toEqual(at('2026-11-20T09:30:00Z'))
  })

  it('opens again a week later, also right after the clocks went back', () => {
    expect(nextOpening([buildWindow(['fri'], '09:00', '17:00')], at('2026-11-20T09:00:00Z'))).toEqual(
      at('2026-11-27T09:00:00Z'),
    )
    const newYork = buildWindow(['sun'], '03:00', '04:00', 'America/New_York')
    expect(nextOpening([newYork], at('2026-10-31T12:00:00Z'))).toEqual(at('2026-11-01T08:00:00Z'))
    expect(nextOpening([newYork], at('2026-11-01T12:00:00Z'))).toEqual(at('2026-11-08T08:00:00Z'))
  })

  it('extends past midnight if its end is before its start, and all day if they are equal', () => {
    const night = buildWindow(['fri'], '22:00', '06:00')
    expect(isWithin(night, at('2026-11-20T23:00:00Z'))).toBe(true)
    expect(isWithin(night, at('2026-11-21T05:59:00Z'))).toBe(true)
    expect(isWithin(night, at('2026-11-21T06:00:00Z'))).toBe(false)
    expect(isWithin(night, at('2026-11-20T05:00:00Z'))).toBe(false)
    const day = buildWindow(['fri'], '08:00', '08:00')
    expect(isWithin(day, at('2026-11-20T07:59:00Z'))).toBe(false)
    expect(isWithin(day, at('2026-11-20T08:00:00Z'))).toBe(true)
    expect(isWithin(day, at('2026-11-21T07:59:00Z'))).toBe(true)
    expect(isWithin(day, at('2026-11-21T08:00:00Z'))).toBe(false)
  })

  it('uses the clock of its time zone, across daylight-saving changes', () => {
    const berlin = buildWindow(['fri', 'mon'], '09:00', '17:00', 'Europe/Berlin')
    expect(isWithin(berlin, at('2026-11-20T08:00:00Z'))).toBe(true)
    expect(isWithin(berlin, at('2026-11-20T16:00:00Z'))).toBe(false)
    // In July Berlin is two hours ahead.
    expect(isWithin(berlin, at('2026-07-03T07:00:00Z'))).toBe(true)
    expect(isWithin(berlin, at('2026-07-03T15:00:00Z'))).toBe(false)
    const kolkata = buildWindow(['sat'], '00:00', '01:00', 'Asia/Kolkata')
    expect(isWithin(kolkata, at('2026-11-20T18:30:00Z'))).toBe(true)
    expect(isWithin(kolkata, at('2026-11-20T19:30:00Z'))).toBe(false)
  })

  it('names its next opening', () => {
    const berlin = buildWindow(['mon', 'fri'], '09:00', '17:00', 'Europe/Berlin')
    const night = buildWindow(['sun'], '22:00', '06:00')
    const next = (...windows: (typeof berlin)[]) =>
      nextOpening(windows, at('2026-11-20T18:00:00Z'))?.toISOString()
    expect(next(berlin)).toBe('2026-11-23T08:00:00.000Z')
    expect(next(berlin, night)).toBe('2026-11-22T22:00:00.000Z')
    expect(next(buildWindow(['fri'], '09:00', '17:00'))).toBe('2026-11-27T09:00:00.000Z')
    expect(next()).toBeUndefined()
    // The clocks go forward on 2027-03-28 at two: half past two does not exist, and the window opens at three or later.
    const skipped = nextOpening(
      [buildWindow(['sun'], '02:30', '05:00', 'Europe/Berlin')],
      at('2027-03-27T12:00:00Z'),
    )
    expect(skipped?.toISOString()).toMatch(/^2027-03-28T0(0:30|1:30):00/)
  })

  it('is open at its reported opening, in any time zone', () => {
    for (const tz of ['UTC', 'Europe/Berlin', 'America/New_York', 'Asia/Kolkata', 'Pacific/Apia'])
      for (let hour = 0; hour < 24 * 9; hour += 7) {
        const window = buildWindow(['tue', 'sat'], '13:30', '14:00', tz)
        const from = new Date(Date.UTC(2026, 9, 20, hour))
        if (isWithin(window, from)) continue
        const opening = nextOpening([window], from)
        expect(opening === undefined || isWithin(window, opening)).toBe(true)
        expect(opening !== undefined && isWithin(window, new Date(opening.getTime() - 1))).toBe(false)
      }
  })

  it('accepts any time of day and any days of the week', () => {
    const days = ['sun', 'mon', 'tue', 'wed', 'thu', 'fri', 'sat']
    for (const [start, end] of [
      ['00:00', '23:59'],
      ['19:09', '20:50'],
    ] as const)
      expect(buildWindow(days, start, end)).toEqual({ days, start, end, tz: 'UTC' })
    for (const [index, day] of days.entries())
      expect(
        isWithin(buildWindow([day], '11:00', '13:00'), new Date(Date.UTC(2026, 10, 15 + index, 12))),
      ).toBe(true)
  })

  it('has a textual description', () => {
    expect(windowText(buildWindow(['mon', 'tue'], '09:00', '17:00'))).toBe('mon,tue 09:00-17:00 UTC')
  })

  it.each([
    [{ days: [], start: '09:00', end: '17:00', tz: 'UTC' }],
    [{ days: ['monday'], start: '09:00', end: '17:00', tz: 'UTC' }],
    [{ days: ['mon'], start: '9:00', end: '17:00', tz: 'UTC' }],
    [{ days: ['mon'], start: '09:00', end: '24:00', tz: 'UTC' }],
    [{ days: ['mon'], start: '09:00', end: '17:60', tz: 'UTC' }],
    [{ days: ['mon'], start: '109:00', end: '17:00', tz: 'UTC' }],
    [{ days: ['mon'], start: '09:000', end: '17:00', tz: 'UTC' }],
    [{ days: ['mon'], start: '30:00', end: '17:00', tz: 'UTC' }],
    [{ days: Array(8).fill('mon'), start: '09:00', end: '17:00', tz: 'UTC' }],
    [{ days: ['mon'], start: '09:00', end: '17:00', tz: 'Mars/Olympus' }],
    [{ days: ['mon'], start: '09:00', end: '17:00' }],
    [{ days: ['mon'], start: '09:00', end: '17:00', tz: 'UTC', until: 'never' }],
  ])('rejects %j', (document) => {
    expect(timeWindow.safeParse(document).success).toBe(false)
  })
})
