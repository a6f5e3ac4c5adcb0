/** A statement that grows at its top while its reader has loaded further down. */
import { expect, it } from 'vitest'
import { joinPages } from '../../src/console/data/join-pages.ts'

/** Entries of these seconds, newest first. */
const entries = (from: number, to: number) =>
  Array.from({ length: from - to + 1 }, (_, position) => ({
    id: `tx_${from - position}`,
    at: new Date((from - position) * 1000).toISOString(),
  }))

it('keeps what was loaded further down below new entries', () => {
  const joined = joinPages(
    { entries: entries(100, 1), nextCursor: 'older' },
    { entries: entries(103, 54), nextCursor: 'page' },
  )
  expect(joined).toEqual({ entries: entries(103, 1), nextCursor: 'older' })
})

it('has no hole after more than a page of new entries', () => {
  const joined = joinPages(
    { entries: entries(100, 1), nextCursor: 'older' },
    { entries: entries(200, 151), nextCursor: 'page' },
  )
  expect(joined).toEqual({ entries: entries(200, 151), nextCursor: 'page' })
})
