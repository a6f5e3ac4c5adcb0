/** Text of others made harmless to read: what cannot be seen, or turns other text around, becomes visible. */

/** Controls, zero-width characters, bidirectional controls, tags and variation selectors beyond the common ones. */
const unseen = /[\p{Cc}\p{Cf}\p{Co}\p{Cn}\u2028\u2029\u115F\u1160\u3164\uFFA0]/gu

/** Replaces every character that has no shape of its own by U+FFFD. Line breaks and tabs become spaces. */
export function plainText(text: string): string {
  return text.replace(/[\n\r\t]+/g, ' ').replace(unseen, '\uFFFD')
}

const SHORT_LENGTH = 64
const TAIL_LENGTH = 16

/** A name for a line: harmless, and cut in the middle when it is very long. */
export function shortText(text: string): string {
  const letters = [...plainText(text)]
  if (letters.length <= SHORT_LENGTH) return letters.join('')
  const head = letters.slice(0, SHORT_LENGTH - TAIL_LENGTH - 1).join('')
  return `${head}…${letters.slice(-TAIL_LENGTH).join('')}`
}
