/** JSON that keeps what a client wrote: numbers by their text, no doubled members, no prototypes. */
import canonicalize from 'canonicalize'
import { LosslessNumber, parse } from 'lossless-json'

/** A JSON value. */
export type Json = string | number | boolean | null | readonly Json[] | { readonly [name: string]: Json }

/** A JSON object. */
export type JsonObject = { readonly [name: string]: Json }

/** Nesting that no request of ours comes near. */
const DEEPEST = 64

/**
 * Parses a JSON document. A number that JavaScript would write differently stays text (see `NumberText` in money.ts), a
 * member that occurs twice and a `__proto__` are refused.
 * @throws SyntaxError saying what is wrong, without the document's values.
 */
export function parseJson(text: string): unknown {
  refuseDeepNesting(text)
  return parse(text, null, {
    parseNumber: (digits) =>
      String(Number(digits)) === digits ? Number(digits) : new LosslessNumber(digits),
    onDuplicateKey: ({ key }) => {
      throw new SyntaxError(`member "${key.slice(0, 40)}" occurs twice`)
    },
  })
}

function refuseDeepNesting(text: string): void {
  let depth = 0
  let isQuoted = false
  for (let at = 0; at < text.length; at += 1) {
    const character = text[at]
    if (isQuoted && character === '\\') at += 1
    else if (character === '"') isQuoted = !isQuoted
    else if (!isQuoted && (character === '{' || character === '[')) depth += 1
    else if (!isQuoted && (character === '}' || character === ']')) depth -= 1
    if (depth > DEEPEST) throw new SyntaxError(`nested deeper than ${DEEPEST}`)
  }
}

/** The RFC 8785 text of a decoded value; bigints and dates count as their strings. @see https://www.rfc-editor.org/rfc/rfc8785 */
export function canonicalJson(value: unknown): string {
  const plain: unknown = JSON.parse(
    JSON.stringify(value ?? null, (_name, member: unknown) =>
      typeof member === 'bigint' ? member.toString() : member,
    ),
  )
  return canonicalize(plain) ?? 'null'
}

/** What a value looks like after a trip over the wire: its own plain copy. */
export function toJson(value: unknown): Json {
  const plain: Json = JSON.parse(JSON.stringify(value ?? null))
  return plain
}
