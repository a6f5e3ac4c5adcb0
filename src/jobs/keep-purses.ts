/** Looks after purses: compares them with the chain, and returns the money of keys that are over. */
import { createPurseComparison } from '../purchases/purse-books.ts'
import { type SweepingParts, sweepPurses } from '../purchases/sweep-purse.ts'
import { findWallet } from '../wallets/store.ts'

/** Creates the job's round. @returns the number of sweeps. */
export function createKeepPurses(
  parts: Omit<SweepingParts, 'walletOf'>,
): (signal: AbortSignal) => Promise<number> {
  const compare = createPurseComparison(parts)
  const walletOf = (accountId: string) => findWallet(parts.database, accountId)
  return async (signal) => {
    const swept = await sweepPurses({ ...parts, walletOf }, signal)
    await compare()
    return swept
  }
}
