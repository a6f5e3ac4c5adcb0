/**
 * Creditor references: what a bank transfer names a request for money by, with check digits against typing errors.
 * @see https://www.iso.org/standard/50649.html (ISO 11649)
 */
import { random } from '../base/random.ts'

/** Without the letters that are mistaken for digits or for each other. */
const ALPHABET = '23456789ABCDEFGHJKMNPQRSTUVWXYZ'
const LENGTH = 10
const WRITTEN = /(?=(RF\d{2}[0-9A-Z]{10}))/g

/** Makes a random reference, such as `RF18B7K2M9QX4T`: 49 random bits. */
export function createCreditorReference(): string {
  const body = Array.from({ length: LENGTH }, () => ALPHABET.charAt(random.below(ALPHABET.length))).join('')
  const check = 98n - remainder(`${body}RF00`)
  return `RF${check.toString().padStart(2, '0')}${body}`
}

/** Finds the reference in what a payer wrote, in any spacing and letter case; null: none, or several. */
export function findCreditorReference(text: string): string | null {
  const plain = text.toUpperCase().replaceAll(/[^0-9A-Z]/g, '')
  const written = [...plain.matchAll(WRITTEN)].flatMap(([, reference]) => reference ?? [])
  const [first = null, ...others] = new Set(written.filter(isValid))
  return others.length === 0 ? first : null
}

function isValid(reference: string): boolean {
  return remainder(`${reference.slice(4)}${reference.slice(0, 4)}`) === 1n
}

/** Remainder of ISO 7064, MOD 97-10: letters count as 10 to 35. */
function remainder(text: string): bigint {
  return BigInt([...text].map((letter) => Number.parseInt(letter, 36)).join('')) % 97n
}
