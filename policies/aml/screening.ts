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
