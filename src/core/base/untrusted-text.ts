/** Untrusted text: written by merchants, banks, aggregators or users. */
import { z } from 'zod'

/** JSON Schema key that marks untrusted text, so that clients can present it to a model as data. */
export const UNTRUSTED_TEXT_KEY = 'x-untrusted'

export function untrustedText(description: string): z.ZodString {
  return z.string().meta({ description, [UNTRUSTED_TEXT_KEY]: true })
}

export function untrustedTextOrNull(description: string): z.ZodNullable<z.ZodString> {
  return untrustedText(description).nullable().describe(description)
}

/** Reduces text to one visible line, without control, bidirectional formatting and blank characters. */
export function visibleText(text: string): string {
  return text
    .replaceAll(/\s+/gu, ' ')
    .replaceAll(/[\p{C}\p{Default_Ignorable_Code_Point}\u2800]/gu, '')
    .trim()
}

/** Reduces a name to visible characters, at most `length` of them. */
export function visibleName(text: string, length: number): string {
  const characters = [...visibleText(text)]
  return characters.length <= length ? characters.join('') : `${characters.slice(0, length - 1).join('')}…`
}

/** Controls, line breaks, and marks that turn the direction of the text around them. */
const TURNING = /[\p{Cc}\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/u
const TURNINGS = new RegExp(TURNING, 'gu')

/**
 * Writes all text of an answer on one line that reads in one direction: agents and sellers write parts of what people read.
 * Names of members, which must stay apart from each other, get escapes instead.
 * @param verbatim members of the answer that stay as they are.
 */
export function inOneLine(
  answer: Record<string, unknown>,
  verbatim: readonly string[] = [],
): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(answer).map(([name, value]) => [name, verbatim.includes(name) ? value : onOneLine(value)]),
  )
}

function onOneLine(value: unknown): unknown {
  if (typeof value === 'string')
    return TURNING.test(value) ? value.replaceAll(/\s+/gu, ' ').replaceAll(TURNINGS, '') : value
  if (Array.isArray(value)) return value.map(onOneLine)
  if (typeof value !== 'object' || value === null || 'toJSON' in value) return value
  return Object.fromEntries(
    Object.entries(value).map(([name, member]) => [escapeName(name), onOneLine(member)]),
  )
}

function escapeName(name: string): string {
  return name.replaceAll(TURNINGS, (mark) => `\\u${mark.charCodeAt(0).toString(16).padStart(4, '0')}`)
}
