/** Polls pending identity reviews. */

import { isStopped } from '../../books/alarms/alarms.ts'
import type { Clock } from '../../core/base/clock.ts'
import { followUp, type KycDependencies } from '../../people/compliance/kyc.ts'
import { pendingApplications } from '../../people/compliance/kyc-store.ts'

/** A more recently updated application may still be handled by its request. */
const QUIET_MS = 3_000
const BATCH = 50

/** Runs one round. A failing review does not block the others. @param signal stops the round early. */
export async function settleReviews(
  verifying: KycDependencies & { readonly clock: Clock },
  signal: AbortSignal,
): Promise<number> {
  const { database, settings, clock, log } = verifying
  const at = clock()
  const keeping = { database, dataKey: settings.dataKey }
  const applications = await pendingApplications(keeping, new Date(at.getTime() - QUIET_MS), BATCH)
  for (const application of applications) {
    if (signal.aborted) break
    if (await isStopped(database, { domain: 'compliance', objectId: application.id })) continue
    await followUp(verifying, application, at).catch((err: unknown) =>
      log.warn({ err, applicationId: application.id }, 'reading an identity review failed'),
    )
  }
  return applications.length
}
