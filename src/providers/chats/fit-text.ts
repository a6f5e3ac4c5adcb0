/** Cuts a text to a length that its escaped form does not exceed. */

const ELLIPSIS = '…'

/** @param max UTF-16 units of the escaped text. @param escapeCharacter form of one character. */
export function fitText(
  text: string,
  max: number,
  escapeCharacter: (character: string) => string = (character) => character,
): string {
  let fitted = ''
  let cut = ''
  for (const character of text) {
    const next = fitted + escapeCharacter(character)
    if (next.length <= max - ELLIPSIS.length) cut = next
    if (next.length > max) return `${cut}${ELLIPSIS}`
    fitted = next
  }
  return fitted
}
