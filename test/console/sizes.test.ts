import { describe, expect, it } from 'vitest'
import { measureSizes } from './measure-sizes.ts'

/** Script of the first screen, compressed. */
const MAX_FIRST_SCREEN_BYTES = 60_000
/** Script that a page adds to it. Charts and the browser's cryptography are loaded when they are first needed. */
const MAX_PAGE_BYTES = 25_000

describe('the size of the console', () => {
  const [first, ...pages] = measureSizes()

  it('shows the first screen with at most 60 KB of script', () => {
    expect(first?.name).toContain('main')
    expect(first?.all).toBeGreaterThan(10_000)
    expect(first?.all).toBeLessThanOrEqual(MAX_FIRST_SCREEN_BYTES)
  })

  it('adds at most 25 KB for any page or later part', () => {
    expect(pages.length).toBeGreaterThan(8)
    expect(pages.filter(({ own }) => own > MAX_PAGE_BYTES)).toEqual([])
  })
})
