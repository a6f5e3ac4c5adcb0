/** Resumes open payouts: sends those that a crash kept from the provider, and reads the state of the others. */

import { releaseOrphans } from '../../books/spending/orphans.ts'
import { claimPayouts } from '../../rails/banking/payout.ts'
import { cancelUnsigned } from '../../rails/banking/prepare-payout.ts'
import { type ResumePayoutDependencies, resumePayout } from '../../rails/banking/resume-payout.ts'
import { findFunding } from '../../rails/swaps/fundings.ts'
import { recordMint } from '../../rails/wallets/reconcile/owed-mints.ts'

/** A more recently touched payout may still be handled by its request. The sandbox's bank sends few webhooks. */
const QUIET_MS = { sandbox: 1_500, production: 15_000 } as const
/** A newer reservation may still get its payout. */
const ORPHANED_MS = 30_000
const BATCH = 50

type PayoutJobDependencies = Omit<ResumePayoutDependencies, 'oweMint' | 'findMove'> & {
  readonly settings: { readonly mode: 'sandbox' | 'production' }
}

/** Runs one round. A failing payout does not block the others. @param signal stops the round early. */
export async function settlePayouts(parts: PayoutJobDependencies, signal: AbortSignal): Promise<number> {
  const { clock, log, settings } = parts
  const now = clock()
  await releaseOrphans(parts, {
    operations: ['banking.payouts.create'],
    tables: ['payout'],
    before: new Date(now.getTime() - ORPHANED_MS),
  })
  const before = new Date(now.getTime() - QUIET_MS[settings.mode])
  const payouts = await claimPayouts(parts, { before, at: now, limit: BATCH })
  const dependencies = {
    ...parts,
    oweMint: recordMint(parts),
    findMove: (id: string) => findFunding(parts.database, id),
  }
  for (const payout of payouts) {
    if (signal.aborted) break
    await resumePayout(dependencies, payout).catch((err: unknown) =>
      log.warn({ err, payoutId: payout.id }, 'resuming a payout failed'),
    )
  }
  await cancelUnsigned(parts, signal)
  return payouts.length
}
