/** Bank account numbers: their form and check digits. A valid number may still not exist. */

/** Weights of the digits of a routing number. @see https://www.aba.com/about-us/routing-number */
const ABA_WEIGHTS = [3, 7, 1] as const

/** First two digits of routing numbers: Federal Reserve districts, thrifts, electronic payments, traveler's checks. */
const ABA_PREFIX = /^(0[1-9]|1[0-2]|2[1-9]|3[0-2]|6[1-9]|7[0-2]|80)/

/** Checks an ABA routing number: nine digits, a district that is in use, and the check digit. */
export function isRoutingNumber(text: string): boolean {
  if (!/^\d{9}$/.test(text) || !ABA_PREFIX.test(text)) return false
  const sum = [...text].reduce((total, digit, at) => total + Number(digit) * (ABA_WEIGHTS[at % 3] ?? 0), 0)
  return sum % 10 === 0
}

/** Length of an IBAN by country. @see https://www.swift.com/standards/data-standards/iban-international-bank-account-number */
const ibanLengths: ReadonlyMap<string, number> = new Map(
  `AD24 AE23 AL28 AT20 AZ28 BA20 BE16 BG22 BH22 BI27 BR29 BY28 CH21 CR22 CY28 CZ24 DE22 DJ27 DK18 DO28 EE20
  EG29 ES24 FI18 FK18 FO18 FR27 GB22 GE22 GI23 GL18 GR27 GT28 HR21 HU28 IE22 IL23 IQ23 IS26 IT27 JO30 KW30
  KZ20 LB28 LC32 LI21 LT20 LU20 LV21 LY25 MC27 MD24 ME22 MK19 MN20 MR27 MT31 MU30 NI28 NL18 NO15 OM23 PK24
  PL28 PS29 PT25 QA29 RO24 RS22 RU33 SA24 SC31 SD18 SE24 SI19 SK24 SM27 SO23 ST25 SV28 TL23 TN24 TR26 UA29
  VA22 VG24 XK20 YE30`
    .split(/\s+/)
    .map((entry) => [entry.slice(0, 2), Number(entry.slice(2))]),
)

/** Checks an IBAN in capital letters without spaces: country, its length, and the check digits (ISO 7064 mod 97-10). */
export function isIban(text: string): boolean {
  if (!/^[A-Z]{2}\d{2}[A-Z0-9]+$/.test(text) || ibanLengths.get(text.slice(0, 2)) !== text.length)
    return false
  const moved = `${text.slice(4)}${text.slice(0, 4)}`
  const digits = [...moved].map((character) => Number.parseInt(character, 36)).join('')
  return BigInt(digits) % 97n === 1n
}

/** Checks the form of a BIC: bank, country, location and an optional branch (ISO 9362). */
export function isBic(text: string): boolean {
  return /^[A-Z]{4}[A-Z]{2}[A-Z0-9]{2}([A-Z0-9]{3})?$/.test(text)
}

/** Checks the form of a British sort code: six digits, and none of the codes that no bank has. */
export function isSortCode(text: string): boolean {
  return /^\d{6}$/.test(text) && !/^0{6}$/.test(text)
}
