/** Labels under a chart: four moments at equal distances, none twice. */
import { describe, expect, it } from 'vitest'
import { labelTimes } from '../../src/console/words/time.ts'

const DAY = 86_400
const now = new Date('2026-11-21T12:00:00Z')
const end = now.getTime() / 1000

describe('labels under a chart', () => {
  it('name days within a year, and end with today', () => {
    const labels = labelTimes(end - 30 * DAY, end, now)
    expect(labels).toHaveLength(4)
    expect(labels.at(-1)).toBe('Today')
    expect(labels[0]).toMatch(/22/)
    expect(labels[0]).toMatch(/Oct/)
    expect(labels[0]).not.toMatch(/2026/)
  })

  it('name clock times within two days, and end with now', () => {
    const labels = labelTimes(end - DAY, end, now)
    expect(labels.at(-1)).toBe('Now')
    expect(labels[1]).toMatch(/^\d{2}:\d{2}/)
  })

  it('name months over more than a year', () => {
    expect(labelTimes(end - 900 * DAY, end, now)[0]).toMatch(/2024/)
  })

  it('end with a day where the stretch ends before now, and never say a day twice', () => {
    expect(labelTimes(end - 30 * DAY, end - 10 * DAY, now).at(-1)).toMatch(/11/)
    const short = labelTimes(end - 2 * DAY, end, now)
    expect(new Set(short).size).toBe(short.length)
  })
})
