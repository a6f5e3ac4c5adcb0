import { buildViolation, type Violation } from '../decision.ts'

/** Result of an AML rule. */
export interface Screening {
  readonly result: 'clear' | 'review' | 'blocked'
  /** Lists that matched; if none did, the lists that were checked. */
  readonly lists: readonly string[]
}

const severity = { clear: 0, review: 1, blocked: 2 } as const

/**
 * Returns the most severe of several screenings, with the lists of all equally severe ones. Without any screening:
 * `review`, because nothing was checked.
 */
export function worstOf(screenings: readonly Screening[]): Screening {
  const [first, ...others] = screenings
  if (first === undefined) return { result: 'review', lists: [] }
  return others.reduce((worst, next) => {
    if (severity[next.result] > severity[worst.result]) return next
    if (severity[next.result] < severity[worst.result]) return worst
    return { result: worst.result, lists: [...worst.lists, ...next.lists] }
  }, first)
}

/** The violation of a screening that is not clear: `limit` names the lists, `requested` is the result. */
export function screeningViolation({ result, lists }: Screening): Violation {
  return buildViolation('aml_screening', { limit: lists.join(','), requested: result })
}

/** Reads the screening from a denial's violations; undefined when AML did not object. */
export function screeningBehind(
  violations: readonly (Pick<Violation, 'limit' | 'requested'> & { readonly rule: string })[],
): Screening | undefined {
  const found = violations.find(({ rule }) => rule === 'aml_screening')
  if (found === undefined) return undefined
  return {
    result: found.requested === 'blocked' ? 'blocked' : 'review',
    lists: (found.limit ?? '').split(','),
  }
}
