import { describe, expect, it } from 'vitest'
import { foldName, normalizePayee, readContactName } from '../../policies/contact-names.ts'

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
