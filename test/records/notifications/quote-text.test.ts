import { describe, expect, it } from 'vitest'
import { quoteText } from '../../../src/records/notifications/quote-text.ts'

describe('quoted text of an agent', () => {
  it.each([
    ['Pay 12.50 USD at 12:30.', 'Pay 12.50 USD at 12:30.'],
    ['see https://evil.example/a', 'see https[:]//evil[.]example/a'],
    ['www.evil.example or evil。example', 'www[.]evil[.]example or evil[.]example'],
    ['mail to:me@evil.example', 'mail to[:]me[at]evil[.]example'],
    ['one\r\nBcc: x\u202Etwo\u200B\u0000', 'one Bcc: xtwo'],
  ])('%j is shown as %j', (text, shown) => {
    expect(quoteText(text)).toBe(shown)
  })

  it('is cut after 300 characters, between characters', () => {
    expect(quoteText('🙂'.repeat(10_000))).toBe(`${'🙂'.repeat(300)}…`)
  })
})
