/** Sandbox: puts on the chain what the books were credited with and a failed mint left out. */
import type { Clock } from '../base/clock.ts'
import type { Log } from '../base/log.ts'
import type { Chain } from '../providers/chain.ts'
import type { Database } from '../storage/database.ts'
import { claimMints, repayMint } from '../wallets/reconcile/owed-mints.ts'

/** Longer than the request that owes it has it in hand. */
const QUIET_MS = 15_000
const BATCH = 100

/** One round. @param signal ends it early. */
export async function repayMints(
  parts: { database: Database; chain: Chain; clock: Clock; log: Log },
  signal: AbortSignal,
): Promise<void> {
  const { database, clock, log } = parts
  const at = clock()
  const due = { before: new Date(at.getTime() - QUIET_MS), at, limit: BATCH }
  for (const owed of await claimMints(database, due)) {
    if (signal.aborted) return
    const { address, token } = owed
    const minted = await repayMint(parts, owed).catch((err: unknown) => {
      log.warn({ err, address, token }, 'what is owed to a wallet cannot be minted yet')
      return null
    })
    if (minted !== null && minted > 0n)
      log.info({ address, token, units: minted.toString() }, 'a mint that failed was made up for')
  }
}
