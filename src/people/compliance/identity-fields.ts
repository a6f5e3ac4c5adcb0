/** Identity fields of persons and institutions, common to all jurisdictions. */
import { z } from 'zod'
import { isLei } from '../../core/base/lei.ts'

/** No control characters, line breaks or marks of direction. Not a pattern in the schema, because not every language knows these classes. */
export function isPlainLine(text: string): boolean {
  return /^[^\p{Cc}\p{Cs}\p{Zl}\p{Zp}\p{Bidi_Control}]*$/u.test(text)
}

/**
 * A person's name: at least one visible letter, no invisible characters except the joiners that some scripts need,
 * and no bidirectional control characters. Directional marks from text copied in Arabic or Hebrew are removed.
 */
export const personName = z
  .string()
  .overwrite((text) => text.replaceAll(/[\u200E\u200F\u061C]/g, ''))
  .trim()
  .min(1, { abort: true })
  .max(100)
  .refine(isPlainLine, 'must not hold control characters')
  .refine((text) => /(?!\p{Default_Ignorable_Code_Point})\p{L}/u.test(text), 'must hold a letter')

/**
 * The officially assigned codes, and XK: Kosovo, as used by the European Union and the IBAN registry.
 * @see https://www.iso.org/iso-3166-country-codes.html
 */
const countries: ReadonlySet<string> = new Set(
  `
  AD AE AF AG AI AL AM AO AQ AR AS AT AU AW AX AZ BA BB BD BE BF BG BH BI BJ BL BM BN BO BQ BR BS BT BV
  BW BY BZ CA CC CD CF CG CH CI CK CL CM CN CO CR CU CV CW CX CY CZ DE DJ DK DM DO DZ EC EE EG EH ER ES
  ET FI FJ FK FM FO FR GA GB GD GE GF GG GH GI GL GM GN GP GQ GR GS GT GU GW GY HK HM HN HR HT HU ID IE
  IL IM IN IO IQ IR IS IT JE JM JO JP KE KG KH KI KM KN KP KR KW KY KZ LA LB LC LI LK LR LS LT LU LV LY
  MA MC MD ME MF MG MH MK ML MM MN MO MP MQ MR MS MT MU MV MW MX MY MZ NA NC NE NF NG NI NL NO NP NR NU
  NZ OM PA PE PF PG PH PK PL PM PN PR PS PT PW PY QA RE RO RS RU RW SA SB SC SD SE SG SH SI SJ SK SL SM
  SN SO SR SS ST SV SX SY SZ TC TD TF TG TH TJ TK TL TM TN TO TR TT TV TW TZ UA UG UM US UY UZ VA VC VE
  VG VI VN VU WF WS XK YE YT ZA ZM ZW
`
    .trim()
    .split(/\s+/),
)

export const countryCode = z
  .string()
  .regex(/^[A-Z]{2}$/, 'must be an ISO 3166-1 alpha-2 code such as DE')
  .refine((code) => countries.has(code), 'is not an ISO 3166-1 country')

const leiForm = /^[0-9A-Z]{18}\d{2}$/

/** A Legal Entity Identifier. Check digits are only reported for a well-formed identifier. */
export const lei = z
  .string()
  .regex(leiForm, 'must be a Legal Entity Identifier')
  .refine((text) => !leiForm.test(text) || isLei(text), 'has invalid check digits')
