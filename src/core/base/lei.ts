/**
 * Validates the form and check digits of a Legal Entity Identifier.
 * @see https://www.gleif.org/en/about-lei/iso-17442-the-lei-code-structure
 */
export function isLei(text: string): boolean {
  if (!/^[0-9A-Z]{18}\d{2}$/.test(text)) return false
  // ISO 7064, MOD 97-10: A is 10, Z is 35.
  return BigInt([...text].map((letter) => Number.parseInt(letter, 36)).join('')) % 97n === 1n
}
