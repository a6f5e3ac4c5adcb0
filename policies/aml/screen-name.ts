import { matchNames } from './match-names.ts'
import type { Screening } from './screening.ts'

/** Requires a review of a payee whose name may be on a sanctions list. @param listed names on the list. */
export function screenName(name: string, listed: readonly string[]): Screening {
  return { result: matchNames(name, listed).length > 0 ? 'review' : 'clear', lists: ['recipient_name'] }
}
