/** Text without the characters that no XML 1.0 document may have, however escaped. @see https://www.w3.org/TR/xml/#charsets */
export function xmlText(text: string): string {
  return text.replaceAll(/[^\u0020-\uD7FF\uE000-\uFFFD\u{10000}-\u{10FFFF}]/gu, '')
}
