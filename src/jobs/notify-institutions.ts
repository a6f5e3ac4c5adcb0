/** Tells beneficiaries' institutions what the Travel Rule asks, and asks them what they say of it. */
import type { Clock } from '../base/clock.ts'
import type { Log } from '../base/log.ts'
import { claimUnsentTravelRules, notifyInstitution } from '../compliance/notify-institution.ts'
import type { TravelRuleNetwork } from '../providers/travel-rule-network.ts'
import type { Database } from '../storage/database.ts'

const BATCH = 50

/** One round. One that cannot be told does not keep the others waiting. @param signal ends the round early. */
export async function notifyInstitutions(
  {
    database,
    travelRuleNetwork: network,
    settings: { dataKey },
    clock,
    log,
  }: {
    readonly database: Database
    readonly travelRuleNetwork: TravelRuleNetwork | null
    readonly settings: { readonly dataKey: Uint8Array }
    readonly clock: Clock
    readonly log: Log
  },
  signal: AbortSignal,
): Promise<void> {
  if (network === null) return
  const at = clock()
  for (const record of await claimUnsentTravelRules(database, { at, limit: BATCH })) {
    if (signal.aborted) return
    await notifyInstitution({ database, network, dataKey, log }, record, at).catch((err: unknown) =>
      log.warn({ err, travelRuleId: record.id }, 'an institution cannot be told yet'),
    )
  }
}
