/** JSON that keeps what a client wrote: numbers by their text, no doubled members, no prototypes. */
import canonicalize from 'canonicalize'
import { LosslessNumber, parse, stringify } from 'lossless-json'

/** A JSON value. */
export type Json = string | number | boolean | null | readonly Json[] | { readonly [name: string]: Json }

/** Nesting that no request of ours comes near. */
const DEEPEST = 64

/** What no member is called (a prototype, and what passes for a number of ours), and what no text holds: PostgreSQL stores neither U+0000 nor half a surrogate pair. */
const TRAPS: ReadonlySet<string> = new Set(['__proto__', 'isLosslessNumber'])
const UNSTORABLE = /[\0\p{Surrogate}]/u

/**
 * Parses a JSON document. A number that JavaScript would write differently stays text (see `NumberText` in money.ts); a
 * member that occurs twice, a `__proto__`, an `isLosslessNumber` and a text that cannot be stored are refused.
 * @throws SyntaxError saying what is wrong, without the document's values.
 */
export function parseJson(text: string): unknown {
  const written = countWrittenMembers(text)
  const value = parse(text, null, {
    parseNumber: (digits) =>
      String(Number(digits)) === digits ? Number(digits) : new LosslessNumber(digits),
    onDuplicateKey: ({ key }) => {
      throw new SyntaxError(`member "${key.slice(0, 40)}" occurs twice`)
    },
  })
  // The parser tells of doubled members only where their values differ.
  if (countMembers(value) !== written) throw new SyntaxError('a member occurs twice')
  return value
}

/** The members of all objects of a document: its colons. @throws SyntaxError where it is nested too deep to be parsed. */
function countWrittenMembers(text: string): number {
  let depth = 0
  let members = 0
  let isQuoted = false
  for (let at = 0; at < text.length; at += 1) {
    const character = text[at]
    if (isQuoted && character === '\\') at += 1
    else if (character === '"') isQuoted = !isQuoted
    else if (isQuoted) continue
    else if (character === ':') members += 1
    else if (character === '{' || character === '[') depth += 1
    else if (character === '}' || character === ']') depth -= 1
    if (depth > DEEPEST) throw new SyntaxError(`nested deeper than ${DEEPEST}`)
  }
  return members
}

/** The members that were kept. @throws SyntaxError where a name or text is none that we take. */
function countMembers(value: unknown): number {
  if (typeof value === 'string') refuseText(value)
  if (typeof value !== 'object' || value === null || value instanceof LosslessNumber) return 0
  if (Array.isArray(value)) return value.reduce((sum: number, item) => sum + countMembers(item), 0)
  return Object.entries(value).reduce((sum, [name, member]) => {
    refuseText(name)
    if (TRAPS.has(name)) throw new SyntaxError(`no member may be called ${name}`)
    return sum + 1 + countMembers(member)
  }, 0)
}

/** Whether a text can be stored. */
export function isStorable(text: string): boolean {
  return !UNSTORABLE.test(text)
}

function refuseText(text: string): void {
  if (!isStorable(text)) throw new SyntaxError('a text holds U+0000 or half a surrogate pair')
}

/** The text of what {@link parseJson} answered, numbers as they were written. */
export function writeJson(value: unknown): string {
  return stringify(value ?? null) ?? 'null'
}

/** The RFC 8785 text of a decoded value; bigints and dates count as their strings. @see https://www.rfc-editor.org/rfc/rfc8785 */
export function canonicalJson(value: unknown): string {
  return canonicalize(toJson(value)) ?? 'null'
}

/** A value's own plain copy, as it is on the wire. A bigint is its digits. */
export function toJson(value: unknown): Json {
  const plain: Json = JSON.parse(
    JSON.stringify(value ?? null, (_name, member: unknown) =>
      typeof member === 'bigint' ? member.toString() : member,
    ),
  )
  return plain
}
