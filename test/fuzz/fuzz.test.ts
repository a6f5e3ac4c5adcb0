/** A small campaign of the fuzzer, the same every time; `npm run fuzz` runs a large one. */
import { expect, it } from 'vitest'
import { runFuzz } from './fuzz.ts'
import { findingText } from './report.ts'

it('breaks nothing: no answer but what the document says, and the books balance', {
  timeout: 240_000,
}, async () => {
  const size = { seed: 20_26, requests: 3_500, calls: 500, only: null, withinMs: 150_000 }
  const { outcome, books, origin } = await runFuzz(size, () => {})
  expect(outcome.findings.map((finding) => findingText(finding, origin))).toEqual([])
  expect(books).toEqual([])
  expect(outcome.sent).toBeGreaterThanOrEqual(3_500)
  expect(outcome.called).toBeGreaterThanOrEqual(500)
  // Deep enough: most operations were also used as they are meant.
  const fine = [...outcome.seen.values()].filter((answers) => answers.has('200')).length
  expect(fine / outcome.seen.size).toBeGreaterThan(0.7)
})
