import fc from 'fast-check'
import { expect, it } from 'vitest'
import { matchNames } from '../../../policies/aml/match-names.ts'

const listed = [
  'LAZARUS GROUP',
  'SEMENOV, Roman',
  'SUEX OTC, S.R.O.',
  'CHATEX',
  'AL-ZAWAHIRI, Ayman',
  'Šešelj, Čedo',
  'O’NEIL, Jack',
  'The Co. Ltd',
  '…',
]

it.each([
  ['Roman Semenov', 'SEMENOV, Roman'],
  ['roman  SEMENOV', 'SEMENOV, Roman'],
  ['Roman Sergeevich Semenov', 'SEMENOV, Roman'],
  ['Lazarus Group', 'LAZARUS GROUP'],
  ['The Lazarus Group Ltd.', 'LAZARUS GROUP'],
  ['Suex OTC sro', 'SUEX OTC, S.R.O.'],
  ['Chatex', 'CHATEX'],
  ['CHATEX LTD', 'CHATEX'],
  ["Jack O'Neil", 'O’NEIL, Jack'],
  ['Jack ONeil', 'O’NEIL, Jack'],
  ['Ayman Zawahiri', 'AL-ZAWAHIRI, Ayman'],
  ['The Co Ltd', 'The Co. Ltd'],
  ['Ayman Al Zawahiri', 'AL-ZAWAHIRI, Ayman'],
  ['Cedo Seselj', 'Šešelj, Čedo'],
])('takes %s for %s', (name, entry) => {
  expect(matchNames(name, listed)).toEqual([entry])
})

it.each([
  'Roman',
  'Roman Polanski',
  'Semenova Roman',
  'Lazarus',
  'Chatex Roma Team',
  'Group',
  'Lazarus Ltd',
  'Jack Neil',
  '',
  '…',
  'Ltd',
])('takes %s for nobody', (name) => {
  expect(matchNames(name, listed)).toEqual([])
})

it('finds any name whatever the order, the case and the punctuation between its words', () => {
  const word = fc.stringMatching(/^[a-z]{4,8}$/)
  const separator = fc.constantFrom(' ', ', ', '-', ' / ')
  fc.assert(
    fc.property(fc.uniqueArray(word, { minLength: 2, maxLength: 4 }), separator, (words, between) => {
      const entry = words.join(' ')
      const said = [...words].reverse().join(between).toUpperCase()
      expect(matchNames(said, [entry, 'somebody else'])).toEqual([entry])
    }),
  )
})

it('sees through characters that nobody sees', () => {
  expect(matchNames('Ro\u200bman Seme\u2060nov', ['Semenov, Roman'])).toEqual(['Semenov, Roman'])
})

it.each([
  ['Rоmаn Sеmеnоv', 'Cyrillic o, a and e'],
  ['RОМАN SEМЕNОV', 'Cyrillic capitals'],
  ['Rоmän Semenόv', 'accents too'],
  ['Romαn Semeno\u03bd', 'Greek alpha and nu'],
  ['ROMAΝ SEΜEΝOV', 'Greek capitals'],
])('sees that %s is written with %s', (name) => {
  expect(matchNames(name, ['Semenov, Roman'])).toEqual(['Semenov, Roman'])
})

it('reads a name in its own script as it is, whatever the case', () => {
  expect(matchNames('РОМАН СЕМЕНОВ', ['Семенов Роман', 'Νίκος Ρωμανός'])).toEqual(['Семенов Роман'])
  expect(matchNames('ΝΙΚΟΣ ΡΩΜΑΝΟΣ', ['Νίκος Ρωμανός'])).toEqual(['Νίκος Ρωμανός'])
})
