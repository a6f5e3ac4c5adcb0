/** Names of contacts: which are one name, which look alike, and which deceive. */
import { describe, expect, it } from 'vitest'
import {
  findNameFault,
  foldName,
  lookOfName,
  normalizePayee,
  readContactName,
} from '../../policies/contact-names.ts'

describe('the name of a contact', () => {
  it('is read after its prefix, in any letter case', () => {
    expect(readContactName('contact:Alice')).toBe('Alice')
    expect(readContactName('CONTACT:contact:x')).toBe('contact:x')
    expect(readContactName('Alice')).toBeNull()
    expect(normalizePayee('contact:  ALICE   Cooper ')).toBe('contact:alice cooper')
    expect(normalizePayee('0xABC')).toBe('0xabc')
  })

  it.each([
    ['Alice', 'ALICE'],
    ['Ａｌｉｃｅ', 'alice'],
    ['José', 'Jose\u0301'],
    ['Straße', 'STRASSE'],
    ['ΣΑΣ', 'σας'],
    ['a  b', ' a b '],
  ])('%s and %s are one', (one, other) => {
    expect(foldName(one)).toBe(foldName(other))
  })

  it.each([
    ['Alice', 'Аlice'],
    ['coco', 'сосо'],
    ['José', 'Jose'],
    ['A1ice', 'Alice'],
    ['B0b', 'Bob'],
    ['O’Brien', 'OBrien'],
  ])('%s and %s look alike and are two', (one, other) => {
    expect(lookOfName(one)).toBe(lookOfName(other))
    expect(foldName(one)).not.toBe(foldName(other))
  })

  it.each([
    ['राम', 'रमा'],
    ['Bill', 'Bili'],
    ['李', '季'],
  ])('%s and %s do not look alike', (one, other) => {
    expect(lookOfName(one)).not.toBe(lookOfName(other))
  })

  it.each(['Alice', 'Ελένη', 'Иван Петров', 'Anna Иванова', '山田 Taro', 'O’Brien & Sons', '7'])(
    '%s is good',
    (name) => {
      expect(findNameFault(name)).toBeNull()
    },
  )

  it.each([
    'Аlice',
    'Al\u200bice',
    'Al\u202eice',
    'a\nb',
    '…',
    'contact:Alice',
    ' Contact :x',
    `0x${'1'.repeat(40)}`,
    '0xDEADBEEF',
    'rcp_01h455vb4pex5vsknk084sn02q',
  ])('%j deceives', (name) => {
    expect(findNameFault(name)).not.toBeNull()
  })
})

describe('folded names', () => {
  it('are the same folded once more, whatever letter is in them', () => {
    const changed: string[] = []
    for (let code = 0x20; code <= 0x1_ff_ff; code += 1) {
      const letter = String.fromCodePoint(code)
      for (const name of [letter, `a${letter}b`, `${letter}\u0301`, `I${letter}`])
        if (foldName(foldName(name)) !== foldName(name)) changed.push(name)
    }
    expect(changed).toEqual([])
  })

  it('are found by what a policy keeps of them', () => {
    for (const name of ['GROẞ', 'Groß', 'gross', 'İstanbul', 'ΟΔΟΣ', 'ﬁsh'])
      expect(foldName(readContactName(normalizePayee(`contact:${name}`)) ?? '')).toBe(foldName(name))
    expect(foldName('GROẞ')).toBe(foldName('groß'))
  })
})
