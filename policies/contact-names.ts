/** Names of contacts: how they are compared, and how one is written in place of an address. Pure. */

/** Precedes the name of a contact that stands for a payee: `contact:Alice`. */
const PREFIX = /^contact:/i

/** The name in `contact:NAME`; null for any other text. */
export function readContactName(text: string): string | null {
  return PREFIX.test(text) ? text.replace(PREFIX, '') : null
}

/**
 * Two texts with the same fold are one name: letter case, width, composition and the number of spaces tell none apart. The fold of a
 * fold is itself: policies keep names folded.
 */
export function foldName(name: string): string {
  // In lower case first: the capital ẞ is its own upper case, and ß is not.
  const folded = name.normalize('NFKC').toLowerCase().toUpperCase().toLowerCase()
  return folded.normalize('NFKC').replaceAll(/\s+/gu, ' ').trim()
}

/** `contact:NAME` with its name folded; any other text in lower case. */
export function normalizePayee(text: string): string {
  const name = readContactName(text)
  return name === null ? text.toLowerCase() : `contact:${foldName(name)}`
}

/** Letters that look like a Latin one, each pair in lower case. @see https://www.unicode.org/reports/tr39/#Confusable_Detection */
const LOOKALIKES = new Map(
  [
    'аa',
    'вb',
    'ьb',
    'сc',
    'ԁd',
    'еe',
    'ҽe',
    'ԍg',
    'һh',
    'нh',
    'іi',
    'їi',
    'јj',
    'кk',
    'ӏl',
    'мm',
    'пn',
    'оo',
    'рp',
    'ԛq',
    'гr',
    'ѕs',
    'тt',
    'цu',
    'ѵv',
    'ԝw',
    'ѡw',
    'хx',
    'уy',
    'зz',
    'αa',
    'βb',
    'ϲc',
    'εe',
    'ηn',
    'ιi',
    'κk',
    'μm',
    'νv',
    'οo',
    'ρp',
    'τt',
    'υu',
    'χx',
    'γy',
    'ζz',
    'ωw',
    'օo',
    'ոn',
    'սu',
    'հh',
    'յj',
    'ցg',
    'զq',
    'ɑa',
    'ɡg',
    'ıi',
    'ɩi',
    'ʟl',
    'ɴn',
    'ʀr',
    'ʏy',
    '0o',
    '1l',
    '|l',
  ].map((pair) => [[...pair][0] ?? '', [...pair][1] ?? ''] as const),
)

/** Two names with the same look are hard to tell apart on a page: accents and letters of other scripts that look alike count as one. */
export function lookOfName(name: string): string {
  const plain = foldName(name)
    .normalize('NFKD')
    .replaceAll(/[\u0300-\u036f\s\p{P}]/gu, '')
  return [...plain].map((letter) => LOOKALIKES.get(letter) ?? letter).join('')
}

/** Scripts whose letters pass for Latin ones. */
const SCRIPTS = [/\p{Script=Latin}/u, /\p{Script=Cyrillic}/u, /\p{Script=Greek}/u, /\p{Script=Armenian}/u]

/** The reason that a text cannot be a contact's name; null if it can. */
export function findNameFault(name: string): string | null {
  if (/[\p{C}\p{Default_Ignorable_Code_Point}\p{Zl}\p{Zp}\u2800]/u.test(name))
    return 'must not hold invisible characters'
  if (!/[\p{L}\p{N}]/u.test(name)) return 'must hold a letter or a digit'
  const folded = foldName(name)
  if (/^contact\s*:/u.test(folded)) return 'must not start with "contact:"'
  if (/^0x[0-9a-f]{6}/u.test(folded) || /^[a-z]{2,6}_[0-9a-z]{20}/u.test(folded))
    return 'must not look like an address or an id'
  const isMixed = folded
    .split(/[^\p{L}\p{M}]+/u)
    .some((word) => SCRIPTS.filter((script) => script.test(word)).length > 1)
  return isMixed ? 'must not mix letters of several scripts in one word' : null
}
