/** Sandbox: repeats failed mints of amounts that are already booked. */
import type { Clock } from '../../core/base/clock.ts'
import type { Log } from '../../core/base/log.ts'
import type { Chain } from '../../providers/chain/port.ts'
import { claimMints, repayMint } from '../../rails/wallets/reconcile/owed-mints.ts'
import type { Database } from '../../storage/database.ts'

/** Longer than the request that owes the mint takes. */
const QUIET_MS = 15_000
const BATCH = 100

/** Runs one round. @param signal stops the round early. */
export async function repayMints(
  parts: { database: Database; chain: Chain; clock: Clock; log: Log },
  signal: AbortSignal,
): Promise<number> {
  const { clock, log } = parts
  const at = clock()
  const due = { before: new Date(at.getTime() - QUIET_MS), at, limit: BATCH }
  const mints = await claimMints(parts, due)
  for (const owed of mints) {
    if (signal.aborted) break
    const { address, token } = owed
    const minted = await repayMint(parts, owed).catch((err: unknown) => {
      log.warn({ err, address, token }, 'repeating a mint failed')
      return null
    })
    if (minted !== null && minted > 0n)
      log.info({ address, token, units: minted.toString() }, 'a failed mint was repeated')
  }
  return mints.length
}
