import { type Violation, violationOf } from '../decision.ts'

/** What an AML rule says of an address. */
export interface Screening {
  readonly result: 'clear' | 'review' | 'blocked'
  /** Names of the lists that hit; where nothing hit, of those that were consulted. */
  readonly lists: readonly string[]
}

const severity = { clear: 0, review: 1, blocked: 2 } as const

/** The most severe of several answers, with the lists of all that are as severe. Of none: `review`, as nothing was consulted. */
export function worstOf(screenings: readonly Screening[]): Screening {
  const [first, ...others] = screenings
  if (first === undefined) return { result: 'review', lists: [] }
  return others.reduce((worst, next) => {
    if (severity[next.result] > severity[worst.result]) return next
    if (severity[next.result] < severity[worst.result]) return worst
    return { result: worst.result, lists: [...worst.lists, ...next.lists] }
  }, first)
}

/** A screening that does not clear a spend, as its decision records it: `limit` names the lists, `requested` is the result. */
export function screeningViolation({ result, lists }: Screening): Violation {
  return violationOf('aml_screening', { limit: lists.join(','), requested: result })
}

/** The screening that a denial records; undefined where AML did not object. */
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
