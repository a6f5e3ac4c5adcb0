/** Names against a sanctions list. Pure, and for a first look only: whoever matches is looked at by a person. */

/** Words that say what kind of company it is, not which. */
const legalForms: ReadonlySet<string> = new Set(
  'ag co company corp corporation gmbh inc limited llc llp ltd ooo plc sa sarl sro srl the'.split(' '),
)

/**
 * The listed names that a name may be: every word of one is a word of the other, in any order and whatever the case, the
 * accents and the punctuation. Two words must agree, unless the listed name has only one and that is all there is.
 */
export function matchNames(name: string, listed: readonly string[]): readonly string[] {
  // What nobody sees may stand between two words, or inside one to make it another.
  const readings = [wordsOf(name), wordsOf(name.replaceAll(/\p{Cf}/gu, ''))]
  return listed.filter((entry) => {
    const words = wordsOf(entry)
    return readings.some((asked) => isSame(asked, words))
  })
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
