/** Lossless JSON: keeps numbers as written, and rejects duplicate members and prototype keys. */
import { LosslessNumber, parse, stringify } from 'lossless-json'
import { randomToken } from './ids.ts'

export type Json = string | number | boolean | null | readonly Json[] | { readonly [name: string]: Json }

/** Maximum nesting; real requests are far below it. */
const MAX_DEPTH = 64

/**
 * Forbidden member names (a prototype, and the marker of lossless numbers) and characters that PostgreSQL cannot
 * store: U+0000 and unpaired surrogates.
 */
const TRAPS: ReadonlySet<string> = new Set(['__proto__', 'isLosslessNumber'])
const UNSTORABLE = /[\0\p{Surrogate}]/u

/**
 * Parses a JSON document. A number that JavaScript would print differently keeps its text (see `NumberText` in
 * money.ts). Duplicate members, `__proto__`, `isLosslessNumber` and text that cannot be stored are rejected.
 * @throws SyntaxError that names the problem without the document's values.
 */
export function parseJson(text: string): unknown {
  const { short, restore } = cutLongTexts(text)
  const written = countWrittenMembers(short)
  const value = parse(short, null, {
    parseNumber: (digits) =>
      String(Number(digits)) === digits ? Number(digits) : new LosslessNumber(digits),
    onDuplicateKey: ({ key }) => {
      throw new SyntaxError(`member "${key.slice(0, 40)}" occurs twice`)
    },
  })
  // The parser reports duplicate members only if their values differ.
  if (countMembers(value) !== written) throw new SyntaxError('a member occurs twice')
  return restore(value)
}

/** Texts from this length on are parsed natively: the lossless parser takes seconds for megabytes. */
const LONG_TEXT = 4_096

/** Puts a short text in the place of each long one. @property restore puts them back into what was parsed. */
function cutLongTexts(text: string): {
  readonly short: string
  readonly restore: (value: unknown) => unknown
} {
  if (text.length < LONG_TEXT) return { short: text, restore: (value) => value }
  // Nobody can guess it, so no other text of the document is taken for one.
  const marker = `${randomToken(12)} `
  const long: string[] = []
  let short = ''
  let copied = 0
  for (let open = text.indexOf('"'); open !== -1; ) {
    const close = findQuote(text, open)
    if (close === -1) break
    if (close - open > LONG_TEXT && !isName(text, close)) {
      short += `${text.slice(copied, open)}"${marker}${long.length}"`
      copied = close + 1
      long.push(readLongText(text.slice(open, copied)))
    }
    open = text.indexOf('"', close + 1)
  }
  const restore = (value: unknown): unknown => {
    if (typeof value === 'string')
      return value.startsWith(marker) ? long[Number(value.slice(marker.length))] : value
    if (typeof value !== 'object' || value === null || value instanceof LosslessNumber) return value
    for (const [name, member] of Object.entries(value)) Reflect.set(value, name, restore(member))
    return value
  }
  return { short: short + text.slice(copied), restore }
}

/** Position of the quote that closes a text; -1 without one. */
function findQuote(text: string, open: number): number {
  for (let close = text.indexOf('"', open + 1); close !== -1; close = text.indexOf('"', close + 1)) {
    let escapes = 0
    while (text[close - 1 - escapes] === '\\') escapes += 1
    if (escapes % 2 === 0) return close
  }
  return -1
}

function isName(text: string, close: number): boolean {
  let next = close + 1
  while (/\s/.test(text[next] ?? '')) next += 1
  return text[next] === ':'
}

function readLongText(literal: string): string {
  let read: unknown
  try {
    read = JSON.parse(literal)
  } catch {
    throw new SyntaxError('a long text is not a JSON string')
  }
  refuseText(String(read))
  return String(read)
}

/** Counts the members of all objects by their colons. @throws SyntaxError when the nesting is too deep to parse. */
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
    if (depth > MAX_DEPTH) throw new SyntaxError(`nested deeper than ${MAX_DEPTH}`)
  }
  return members
}

/** Counts the parsed members. @throws SyntaxError for forbidden names and text. */
function countMembers(value: unknown): number {
  if (typeof value === 'string') refuseText(value)
  if (typeof value !== 'object' || value === null || value instanceof LosslessNumber) return 0
  if (Array.isArray(value)) return value.reduce((sum: number, item) => sum + countMembers(item), 0)
  return Object.entries(value).reduce((sum, [name, member]) => {
    refuseText(name)
    if (TRAPS.has(name)) throw new SyntaxError(`the member name ${name} is not allowed`)
    return sum + 1 + countMembers(member)
  }, 0)
}

/** True if PostgreSQL can store the text. */
export function isStorable(text: string): boolean {
  return !UNSTORABLE.test(text)
}

function refuseText(text: string): void {
  if (!isStorable(text)) throw new SyntaxError('a string contains U+0000 or an unpaired surrogate')
}

/** Serializes a value from {@link parseJson}, with numbers as they were written. */
export function writeJson(value: unknown): string {
  return stringify(value ?? null) ?? 'null'
}

/**
 * Canonical JSON (RFC 8785); bigints and dates become strings. One pass: a transfer writes nine such texts.
 * @see https://www.rfc-editor.org/rfc/rfc8785
 */
export function canonicalJson(value: unknown): string {
  return canonicalText(value) ?? 'null'
}

/** Undefined for what JSON leaves out. Members are sorted by UTF-16 code units, as the RFC demands. */
function canonicalText(value: unknown): string | undefined {
  if (typeof value === 'bigint' || value instanceof LosslessNumber) return `"${value.toString()}"`
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  if ('toJSON' in value && typeof value.toJSON === 'function') return canonicalText(value.toJSON())
  if (Array.isArray(value)) return `[${value.map((item) => canonicalText(item) ?? 'null').join()}]`
  let members = ''
  for (const name of Object.keys(value).sort()) {
    const text = canonicalText(Reflect.get(value, name))
    if (text !== undefined) members += `${members === '' ? '' : ','}${JSON.stringify(name)}:${text}`
  }
  return `{${members}}`
}

/** Converts a value to plain JSON; a bigint, and a number that {@link parseJson} kept as text, become their digits. */
export function toJson(value: unknown): Json {
  const plain: Json = JSON.parse(
    JSON.stringify(value ?? null, (_name, member: unknown) =>
      typeof member === 'bigint' || member instanceof LosslessNumber ? member.toString() : member,
    ),
  )
  return plain
}
