/** Matches names against a sanctions list. Pure, and only a first screening: a person reviews every match. */

/** Words for the legal form of a company, ignored in comparisons. */
const legalForms: ReadonlySet<string> = new Set(
  'ag co company corp corporation gmbh inc limited llc llp ltd ooo plc sa sarl sro srl the'.split(' '),
)

/** Letters of other scripts that look like Latin letters. @see https://www.unicode.org/reports/tr39/ */
const lookAlikes: ReadonlyMap<string, string> = new Map(
  [
    ['АВЕЅІЈКМНОРСТУХҮԌԚԜӀ', 'ABESIJKMHOPCTYXYGQWI'],
    ['авекмнорстухгіјѕһԁԛԝүӏѵ', 'abekmhopctyxrijshdqwylv'],
    ['ΑΒΕΖΗΙΚΜΝΟΡΤΥΧϹͿ', 'ABEZHIKMNOPTYXCJ'],
    ['αγικνορυχϲϳ', 'ayikvopuxcj'],
    ['ıɑɡłŁøØđĐħ', 'iaglLoOdDh'],
    ['ᴀʙᴄᴅᴇꜰɢʜɪᴊᴋʟᴍɴᴏᴘǫʀꜱᴛᴜᴠᴡʏᴢ', 'abcdefghijklmnopqrstuvwyz'],
    ['ᎪᏴᏟᎠᎬᏀᎻᎥᎫᏦᏞᎷᏢᎡᏒᏚᎢᏙᏔᎳᎩᏃ', 'ABCDEGHiJKLMPRRSTVWWYZ'],
    ['աԁօսհոցքզ', 'wdouhngpq'],
  ].flatMap(([from = '', to = '']) => [...from].map((letter, at) => [letter, to[at] ?? letter])),
)

/**
 * Finds the listed names that a name may refer to. Every word of one name must be a word of the other, regardless of
 * order, case, accents, punctuation and look-alike letters. Two words must match, unless both names have only one.
 */
export function matchNames(name: string, listed: readonly string[]): readonly string[] {
  // An invisible character may separate two words, or hide inside one.
  const queried = [name.replaceAll(unseen, ' '), name.replaceAll(unseen, '')]
  const spelled = [...new Set(queried.flatMap((each) => [each, asLatin(each)]))]
  const words = spelled.map(extractWords)
  const readings = [
    ...words,
    ...spelled.map((each) => extractWords(each.replaceAll(/[^\p{L}\p{N}\p{M}\s]/gu, ''))),
    ...spelled.map((each) => joinNeighbors(splitWords(each))),
  ]
  const guesses = words.filter((each) => [...each].some(isMixed))
  return listed.filter((entry) => {
    const of = extractWords(entry)
    return readings.some((each) => isSame(each, of)) || guesses.some((each) => isSame(readAs(each, of), of))
  })
}

/**
 * Also zero-width letters and the blank braille pattern.
 * @see https://www.unicode.org/reports/tr44/#Default_Ignorable_Code_Point
 */
const unseen = /[\p{Cf}\p{Default_Ignorable_Code_Point}\u2800]/gu

/** No listed name has a longer word; also bounds the time per name. */
const MAX_WORD_LENGTH = 40

/** Adds the words that result from joining adjacent ones, because a name may be split arbitrarily. */
function joinNeighbors(words: readonly string[]): ReadonlySet<string> {
  const joined = new Set(words)
  for (const at of words.keys()) {
    let word = ''
    for (const next of words.slice(at)) {
      word += next
      if (word.length > MAX_WORD_LENGTH) break
      joined.add(word)
    }
  }
  return joined
}

const nonLatin = /(?!\p{Script=Latin})\p{L}/u

/** Checks for a mostly Latin word with some letters of unknown appearance. */
function isMixed(word: string): boolean {
  const letters = [...word]
  const foreignCount = letters.filter((letter) => nonLatin.test(letter)).length
  return foreignCount > 0 && foreignCount * 2 < letters.length
}

/** Replaces each mixed word by a listed word with the same letters at the same places, if there is one. */
function readAs(queried: ReadonlySet<string>, listed: ReadonlySet<string>): ReadonlySet<string> {
  const readOne = (word: string): string => {
    const letters = [...word]
    const fits = (other: string) =>
      other.length === letters.length &&
      letters.every((letter, at) => letter === other[at] || nonLatin.test(letter))
    return isMixed(word) ? ([...listed].find(fits) ?? word) : word
  }
  return new Set([...queried].map(readOne))
}

/**
 * Replaces look-alike letters by Latin ones, before case folding, because an upper-case letter may look like a
 * different one.
 */
function asLatin(name: string): string {
  return [...name.normalize('NFD')].map((letter) => lookAlikes.get(letter) ?? letter).join('')
}

function isSame(queried: ReadonlySet<string>, words: ReadonlySet<string>): boolean {
  if (queried.size === 0 || words.size === 0) return false
  const [fewer, more] = queried.size < words.size ? [queried, words] : [words, queried]
  if (fewer.size === 1 && more.size > 1) return false
  return [...fewer].every((word) => more.has(word))
}

function extractWords(name: string): ReadonlySet<string> {
  const words = splitWords(name)
  const telling = words.filter((word) => !legalForms.has(word))
  return new Set(telling.length === 0 ? words : telling)
}

function splitWords(name: string): readonly string[] {
  const plain = name
    .normalize('NFKD')
    .replaceAll(/\p{M}/gu, '')
    .toLowerCase()
    // S.R.O. is one word, Abd-al-Rahman are three.
    .replaceAll(/['’.\u02B0-\u02FF]/gu, '')
  return plain.match(/[\p{L}\p{N}]+/gu) ?? []
}
