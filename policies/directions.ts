/**
 * Directions in which the members of a limit loosen. A declaration has an entry for every member, or it does not compile. One that
 * is missing in a value is no limit, except of `narrower`: an empty list denies nothing.
 */
import { usdMicrosOf } from './usd.ts'

/**
 * The change that loosens a member. `higher`, `lower`: an amount or a count. `wider`: a list of what is allowed.
 * `narrower`: a list of what is denied. `later`, `earlier`: a moment. `on`, `off`: a switch. `never`: no change of it. A function judges what has no order.
 */
export type Direction<Value = unknown> =
  | 'higher'
  | 'lower'
  | 'wider'
  | 'narrower'
  | 'later'
  | 'earlier'
  | 'on'
  | 'off'
  | 'never'
  | ((before: Value | undefined, after: Value | undefined) => boolean)

/** The direction of every member, and of the members of those that are objects. */
export type Directions<Members> = {
  readonly [Name in keyof Members]-?: Direction<Members[Name]> | Nested<NonNullable<Members[Name]>>
}

type Nested<Value> = Value extends readonly unknown[] | Date
  ? never
  : Value extends object
    ? Directions<Value>
    : never

/** Lists the members that are looser after a change, by name. */
export function looserMembers<Members extends object>(
  directions: Directions<Members>,
  before: Partial<Members> | undefined,
  after: Partial<Members> | undefined,
): readonly string[] {
  return Object.entries(directions).flatMap(([name, direction]) =>
    // The declaration has a direction for each member, which its mapped type proves.
    isLooser(direction as AnyDirection, readMember(before, name), readMember(after, name)) ? [name] : [],
  )
}

type AnyDirection = Direction | { readonly [Name in string]: AnyDirection }

function isLooser(direction: AnyDirection, before: unknown, after: unknown): boolean {
  if (typeof direction === 'function') return direction(before, after)
  if (typeof direction !== 'string')
    return Object.entries(direction).some(([name, inner]) =>
      isLooser(inner, readMember(before, name), readMember(after, name)),
    )
  switch (direction) {
    case 'never':
      return false
    case 'higher':
      return exceeds(toNumber(before), toNumber(after))
    case 'lower':
      return exceeds(negate(toNumber(before)), negate(toNumber(after)))
    case 'later':
      return exceeds(toMoment(before), toMoment(after))
    case 'earlier':
      return exceeds(negate(toMoment(before)), negate(toMoment(after)))
    case 'wider':
      return isMissing(before) ? false : isMissing(after) || hasMore(before, after)
    case 'narrower':
      return hasMore(after, before)
    case 'on':
      return before !== true && after === true
    case 'off':
      return before !== false && after === false
  }
}

function isMissing(value: unknown): value is null | undefined {
  return value === undefined || value === null
}

/** True if a limit rose, or was removed. */
function exceeds(before: bigint | undefined, after: bigint | undefined): boolean {
  return before !== undefined && (after === undefined || after > before)
}

/** True if a list has entries that another lacks. */
function hasMore(than: unknown, list: unknown): boolean {
  const [known, entries] = [than, list].map((value) => (Array.isArray(value) ? value : []))
  return entries?.some((entry) => !known?.includes(entry)) === true
}

function readMember(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null ? Reflect.get(value, name) : undefined
}

/** A decimal string in millionths, and a count as it is. A member has values of one kind. */
function toNumber(value: unknown): bigint | undefined {
  if (typeof value === 'bigint') return value
  if (typeof value === 'number') return BigInt(Math.trunc(value))
  return typeof value === 'string' ? usdMicrosOf(value) : undefined
}

/** A moment that cannot be read limits nothing. */
function toMoment(value: unknown): bigint | undefined {
  const time = value instanceof Date ? value.getTime() : typeof value === 'string' ? Date.parse(value) : NaN
  return Number.isNaN(time) ? undefined : BigInt(time)
}

function negate(value: bigint | undefined): bigint | undefined {
  return value === undefined ? undefined : -value
}
