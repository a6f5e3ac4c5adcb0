/** Names against a sanctions list. Pure, and for a first look only: whoever matches is looked at by a person. */

/** Words that say what kind of company it is, not which. */
const legalForms: ReadonlySet<string> = new Set(
  'ag co company corp corporation gmbh inc limited llc llp ltd ooo plc sa sarl sro srl the'.split(' '),
)

/** Letters of other scripts that look like Latin ones. @see https://www.unicode.org/reports/tr39/ */
const lookAlikes: ReadonlyMap<string, string> = new Map(
  [
    ['АВЕЅІЈКМНОРСТУХҮԌԚԜӀ', 'ABESIJKMHOPCTYXYGQWI'],
    ['авекмнорстухгіјѕһԁԛԝүӏѵ', 'abekmhopctyxrijshdqwylv'],
    ['ΑΒΕΖΗΙΚΜΝΟΡΤΥΧϹͿ', 'ABEZHIKMNOPTYXCJ'],
    ['αγικνορυχϲϳ', 'ayikvopuxcj'],
    ['ıɑɡłŁøØđĐħ', 'iaglLoOdDh'],
  ].flatMap(([from = '', to = '']) => [...from].map((letter, at) => [letter, to[at] ?? letter])),
)

/**
 * The listed names that a name may be: every word of one is a word of the other, in any order and whatever the case, the
 * accents, the punctuation and the script of letters that look the same. Two words must agree, unless the listed name has
 * only one and that is all there is.
 */
export function matchNames(name: string, listed: readonly string[]): readonly string[] {
  // What nobody sees may stand between two words, or inside one to make it another.
  const asked = [name, name.replaceAll(/\p{Cf}/gu, '')]
  const readings = asked.flatMap((each) => [wordsOf(each), wordsOf(asLatin(each))])
  return listed.filter((entry) => {
    const words = wordsOf(entry)
    return readings.some((reading) => isSame(reading, words))
  })
}

/** What it looks like to who reads Latin. Before the case is folded: an upper-case letter may look like another one. */
function asLatin(name: string): string {
  return [...name.normalize('NFD')].map((letter) => lookAlikes.get(letter) ?? letter).join('')
}

function isSame(asked: ReadonlySet<string>, words: ReadonlySet<string>): boolean {
  if (asked.size === 0 || words.size === 0) return false
  const [fewer, more] = asked.size < words.size ? [asked, words] : [words, asked]
  if (fewer.size === 1 && more.size > 1) return false
  return [...fewer].every((word) => more.has(word))
}

function wordsOf(name: string): ReadonlySet<string> {
  const plain = name
    .normalize('NFKD')
    .replaceAll(/\p{M}/gu, '')
    .toLowerCase()
    // S.R.O. is one word, Abd-al-Rahman are three.
    .replaceAll(/['’.]/gu, '')
  const words = plain.match(/[\p{L}\p{N}]+/gu) ?? []
  const telling = words.filter((word) => !legalForms.has(word))
  return new Set(telling.length === 0 ? words : telling)
}
