/** Codes of requests that a program starts and a person decides on a page. */
import { createHash } from 'node:crypto'

/** Letters of user codes: no vowels, so that no words appear. @see https://www.rfc-editor.org/rfc/rfc8628#section-6.1 */
const LETTERS = 'BCDFGHJKLMNPQRSTVWXZ'

/** Eight letters such as `BCDF-GHJK`, shown by the program and on the page, so that a person can compare them. */
export function toUserCode(code: string): string {
  const letters = [...codeHash(code).subarray(0, 8)].map((byte) => LETTERS.charAt(byte % LETTERS.length))
  return `${letters.slice(0, 4).join('')}-${letters.slice(4).join('')}`
}

/** SHA-256, which is stored instead of codes and secrets. */
export function codeHash(text: string): Uint8Array {
  return createHash('sha256').update(text).digest()
}
