/** A small campaign of the fuzzer with a fixed seed; `npm run fuzz` runs a large one. */
import { expect, it } from 'vitest'
import { runFuzz } from './fuzz.ts'
import { findingText } from './report.ts'

it('finds no answer outside the document, and balanced books', {
  timeout: 480_000,
}, async () => {
  const size = { seed: 20_26, requests: 14_000, calls: 1_000, only: null, withinMs: 400_000 }
  const { outcome, books, origin } = await runFuzz(size, () => {})
  expect(outcome.findings.map((finding) => findingText(finding, origin))).toEqual([])
  expect(books).toEqual([])
  expect(outcome.sent).toBeGreaterThanOrEqual(14_000)
  expect(outcome.called).toBeGreaterThanOrEqual(1_000)
  // Coverage check: most operations also succeeded. Exempt is what only a provider or an agent's key can sign, or needs a secret code.
  const signed = [' /api/webhooks/', ' /api/agents/registrations', ' /api/auth/devices/']
  const callable = [...outcome.seen].filter(([where]) => !signed.some((path) => where.includes(path)))
  const fine = callable.filter(([, answers]) => answers.has('200')).length
  expect(fine / callable.length).toBeGreaterThan(0.7)
})
