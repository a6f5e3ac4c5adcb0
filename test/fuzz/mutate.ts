/** Small damage to a valid value: one member wrong, missing or added. */
import fc from 'fast-check'
import { isList, isObject, type Part } from './document.ts'
import { hostile } from './values.ts'

/** One change at one place. @property at index of the place, modulo their number. */
export interface Damage {
  readonly at: number
  readonly how: 'replace' | 'drop' | 'add' | 'repeat' | 'wrap'
  readonly value: Part
  readonly name: string
}

export const damages: fc.Arbitrary<Damage> = fc.record({
  at: fc.nat(999),
  how: fc.constantFrom('replace', 'replace', 'replace', 'drop', 'add', 'repeat', 'wrap'),
  value: hostile,
  name: fc.constantFrom(
    'extra',
    '__proto__',
    'constructor',
    'toString',
    'id',
    'accountId',
    '',
    'a.b',
    'é',
    'x'.repeat(200),
  ),
})

export function applyDamage(value: Part, { at, how, value: wrong, name }: Damage): Part {
  const places = listPlaces(value)
  const place = places[at % places.length] ?? []
  return changeAt(value, place, (part) => {
    if (how === 'replace') return wrong
    if (how === 'wrap') return at % 2 === 0 ? [part] : { value: part }
    if (how === 'repeat') return isList(part) ? [...part, ...part] : [part, part]
    if (how === 'add' && isObject(part)) return withMember(part, name, wrong)
    return how === 'drop' ? undefined : wrong
  })
}

type Place = readonly (string | number)[]

/** Every place in a value, starting with the whole. */
function listPlaces(value: Part): Place[] {
  const below = isList(value)
    ? value.map((item, index) => [index, item] as const)
    : isObject(value)
      ? Object.entries(value)
      : []
  return [[], ...below.flatMap(([name, member]) => listPlaces(member).map((place) => [name, ...place]))]
}

/** A value with another part at a place. @param change returns undefined to remove the part. */
function changeAt(value: Part, place: Place, change: (part: Part) => Part | undefined): Part {
  const [name, ...rest] = place
  if (name === undefined) return change(value) ?? null
  if (isList(value))
    return value.flatMap((item, index) => {
      if (index !== name) return [item]
      const next = rest.length === 0 ? change(item) : changeAt(item, rest, change)
      return next === undefined ? [] : [next]
    })
  if (!isObject(value)) return value
  return Object.fromEntries(
    Object.entries(value).flatMap(([member, part]) => {
      if (member !== name) return [[member, part]]
      const next = rest.length === 0 ? change(part) : changeAt(part, rest, change)
      return next === undefined ? [] : [[member, next]]
    }),
  )
}

/** Also sets a member called `__proto__`, as JSON.parse does. */
function withMember(part: { readonly [name: string]: Part }, name: string, member: Part): Part {
  const copy = { ...part }
  Object.defineProperty(copy, name, { value: member, enumerable: true, configurable: true, writable: true })
  return copy
}
