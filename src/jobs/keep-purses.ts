/** Looks after purses: compares them with the chain, and returns the money of keys that are over. */
import { createPurseComparison } from '../purchases/purse-books.ts'
import { type SweepingParts, sweepPurses } from '../purchases/sweep-purse.ts'

/** Creates the job's round. @returns the number of sweeps. */
export function createKeepPurses(parts: SweepingParts): (signal: AbortSignal) => Promise<number> {
  const compare = createPurseComparison(parts)
  return async (signal) => {
    const swept = await sweepPurses(parts, signal)
    await compare()
    return swept
  }
}
