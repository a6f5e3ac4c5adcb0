/** A small campaign of the fuzzer, the same every time; `npm run fuzz` runs a large one. */
import { expect, it } from 'vitest'
import { runFuzz } from './fuzz.ts'
import { findingText } from './report.ts'

it('breaks nothing: no answer but what the document says, and the books balance', {
  timeout: 240_000,
}, async () => {
  const size = { seed: 20_26, requests: 5_000, calls: 500, only: null, withinMs: 180_000 }
  const { outcome, books, origin } = await runFuzz(size, () => {})
  expect(outcome.findings.map((finding) => findingText(finding, origin))).toEqual([])
  expect(books).toEqual([])
  expect(outcome.sent).toBeGreaterThanOrEqual(5_000)
  expect(outcome.called).toBeGreaterThanOrEqual(500)
  // Deep enough: most operations were also used as they are meant. Only a provider can sign a webhook.
  const callable = [...outcome.seen].filter(([where]) => !where.includes(' /api/webhooks/'))
  const fine = callable.filter(([, answers]) => answers.has('200')).length
  expect(fine / callable.length).toBeGreaterThan(0.7)
})
