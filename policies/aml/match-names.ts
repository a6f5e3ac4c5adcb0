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
    ['ᴀʙᴄᴅᴇꜰɢʜɪᴊᴋʟᴍɴᴏᴘǫʀꜱᴛᴜᴠᴡʏᴢ', 'abcdefghijklmnopqrstuvwyz'],
    ['ᎪᏴᏟᎠᎬᏀᎻᎥᎫᏦᏞᎷᏢᎡᏒᏚᎢᏙᏔᎳᎩᏃ', 'ABCDEGHiJKLMPRRSTVWWYZ'],
    ['աԁօսհոցքզ', 'wdouhngpq'],
  ].flatMap(([from = '', to = '']) => [...from].map((letter, at) => [letter, to[at] ?? letter])),
)

/**
 * The listed names that a name may be: every word of one is a word of the other, in any order and whatever the case, the
 * accents, the punctuation and the script of letters that look the same. Two words must agree, unless the listed name has
 * only one and that is all there is.
 */
export function matchNames(name: string, listed: readonly string[]): readonly string[] {
  // What nobody sees may stand between two words, or inside one to make it another.
  const asked = [name.replaceAll(unseen, ' '), name.replaceAll(unseen, '')]
  const spelled = [...new Set(asked.flatMap((each) => [each, asLatin(each)]))]
  const words = spelled.map(wordsOf)
  const readings = [
    ...words,
    ...spelled.map((each) => wordsOf(each.replaceAll(/[^\p{L}\p{N}\p{M}\s]/gu, ''))),
    ...spelled.map((each) => joinedOf(allWordsOf(each))),
  ]
  const guesses = words.filter((each) => [...each].some(isMixed))
  return listed.filter((entry) => {
    const of = wordsOf(entry)
    return readings.some((each) => isSame(each, of)) || guesses.some((each) => isSame(readAs(each, of), of))
  })
}

/** Also letters that have no width, and a braille pattern without a dot. @see https://www.unicode.org/reports/tr44/#Default_Ignorable_Code_Point */
const unseen = /[\p{Cf}\p{Default_Ignorable_Code_Point}\u2800]/gu

/** No name on a list has longer words, and no name that is asked about takes long. */
const LONGEST_WORD = 40

/** The words, and what they are where some of them were torn apart. */
function joinedOf(words: readonly string[]): ReadonlySet<string> {
  const joined = new Set(words)
  for (const at of words.keys()) {
    let word = ''
    for (const next of words.slice(at)) {
      word += next
      if (word.length > LONGEST_WORD) break
      joined.add(word)
    }
  }
  return joined
}

const foreign = /(?!\p{Script=Latin})\p{L}/u

/** Whether a word is of Latin letters, but for some that look like none we know. */
function isMixed(word: string): boolean {
  const letters = [...word]
  const strange = letters.filter((letter) => foreign.test(letter)).length
  return strange > 0 && strange * 2 < letters.length
}

/** The words, where one that is mixed is any listed word that has its other letters at the same places. */
function readAs(asked: ReadonlySet<string>, listed: ReadonlySet<string>): ReadonlySet<string> {
  const readOne = (word: string): string => {
    const letters = [...word]
    const fits = (other: string) =>
      other.length === letters.length &&
      letters.every((letter, at) => letter === other[at] || foreign.test(letter))
    return isMixed(word) ? ([...listed].find(fits) ?? word) : word
  }
  return new Set([...asked].map(readOne))
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
  const words = allWordsOf(name)
  const telling = words.filter((word) => !legalForms.has(word))
  return new Set(telling.length === 0 ? words : telling)
}

function allWordsOf(name: string): readonly string[] {
  const plain = name
    .normalize('NFKD')
    .replaceAll(/\p{M}/gu, '')
    .toLowerCase()
    // S.R.O. is one word, Abd-al-Rahman are three.
    .replaceAll(/['’.\u02B0-\u02FF]/gu, '')
  return plain.match(/[\p{L}\p{N}]+/gu) ?? []
}
