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
