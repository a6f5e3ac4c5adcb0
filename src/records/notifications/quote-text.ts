import { visibleText } from '../../core/base/untrusted-text.ts'

const MAX_CHARACTERS = 300

/**
 * Quotes untrusted text in a mail: one visible line of at most 300 characters. Mail programs make links of addresses in plain text,
 * so that every scheme, domain and mail address is broken up: `https[:]//example[.]com`.
 */
export function quoteText(text: string): string {
  const characters = [...visibleText(text)]
  const line = characters.slice(0, MAX_CHARACTERS).join('')
  const shown = line
    .replaceAll(/:(?=[^\s\d])/gu, '[:]')
    .replaceAll(/[.．。｡](?=[\p{L}\p{N}])(?!(?<=\d.)\d)/gu, '[.]')
    .replaceAll(/[@＠]/gu, '[at]')
  return characters.length > MAX_CHARACTERS ? `${shown}…` : shown
}
