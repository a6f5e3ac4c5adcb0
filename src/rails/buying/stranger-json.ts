import { parseJson } from '../../core/base/json.ts'

/**
 * Parses JSON that a stranger wrote. @returns undefined for text that is none, and for what cannot be kept: members that occur
 * twice, deep nesting, characters that no database stores.
 */
export function parseStrangersJson(text: string): unknown {
  try {
    parseJson(text)
    // The numbers stay as JavaScript reads them: what is signed repeats them.
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
