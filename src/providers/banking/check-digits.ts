/** Check digits of bank accounts, so that the sandbox's numbers pass validation. */

/**
 * Computes the ninth digit of a routing number.
 * @param digits the first eight.
 * @see https://www.aba.com/about-us/routing-number
 */
export function abaCheckDigit(digits: string): string {
  const sum = [...digits].reduce((total, digit, at) => total + Number(digit) * ([3, 7, 1][at % 3] ?? 0), 0)
  return String((10 - (sum % 10)) % 10)
}

/** Builds an IBAN from a country and a BBAN: ISO 13616, with check digits by ISO 7064 mod 97-10. */
export function buildIban(country: string, bban: string): string {
  const digits = [...`${bban}${country}00`].map((character) => Number.parseInt(character, 36)).join('')
  const check = 98n - (BigInt(digits) % 97n)
  return `${country}${check.toString().padStart(2, '0')}${bban}`
}

/** Weights of an account number for sort code 08-99-99, by modulus 10. @see https://www.vocalink.com/tools/modulus-checking/ */
const ukWeights = [7, 1, 3, 7, 1, 3, 7, 1]

/** Computes the eighth digit of an account number at sort code 08-99-99. @param digits the first seven. */
export function ukCheckDigit(digits: string): string {
  const sum = [...digits].reduce((total, digit, at) => total + Number(digit) * (ukWeights[at] ?? 0), 0)
  // The last weight is 1.
  return String((10 - (sum % 10)) % 10)
}
