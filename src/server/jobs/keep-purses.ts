/** Looks after purses and escrows: compares them with the chain, and returns the money of keys that are over. */

import { createPurseComparison } from '../../rails/buying/purse-books.ts'
import { type SweepingParts, sweepPurses } from '../../rails/buying/sweep-purse.ts'
import { createEscrowComparison } from '../../rails/wallets/escrow/escrow-books.ts'

/** Creates the job's round. @returns the number of sweeps. */
export function createKeepPurses(parts: SweepingParts): (signal: AbortSignal) => Promise<number> {
  const comparePurses = createPurseComparison(parts)
  const compareEscrows = createEscrowComparison(parts)
  return async (signal) => {
    const swept = await sweepPurses(parts, signal)
    await comparePurses()
    await compareEscrows()
    return swept
  }
}
