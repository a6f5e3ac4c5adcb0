/** Text that somebody outside wrote: a merchant, a bank, an aggregator, whoever named an account. */
import { z } from 'zod'

/** What marks it in a JSON Schema, so that whoever hands it to a model can say that it is data. */
export const UNTRUSTED_TEXT_KEY = 'x-untrusted'

/** The schema of such a text in an answer. @param description as of every member: what it says. */
export function untrustedText(description: string): z.ZodString {
  return z.string().meta({ description, [UNTRUSTED_TEXT_KEY]: true })
}

/** The same where there may be none: null. */
export function untrustedTextOrNull(description: string): z.ZodNullable<z.ZodString> {
  return untrustedText(description).nullable().describe(description)
}

/** The text as one line of what can be seen: no control characters, none that turn what follows around or hide in it. */
export function visibleText(text: string): string {
  return text.replaceAll(/\s+/gu, ' ').replaceAll(/\p{C}/gu, '').trim()
}
