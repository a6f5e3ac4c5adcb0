/** Sends Travel Rule data to beneficiaries' institutions, and fetches their responses. */
import type { Clock } from '../../core/base/clock.ts'
import type { Log } from '../../core/base/log.ts'
import { claimUnsentTravelRules, notifyInstitution } from '../../people/compliance/notify-institution.ts'
import type { TravelRuleNetwork } from '../../providers/travel-rule-network/port.ts'
import type { Database } from '../../storage/database.ts'

const BATCH = 50

/** Runs one round. A failing item does not block the others. @param signal stops the round early. */
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
): Promise<number> {
  if (network === null) return 0
  const at = clock()
  const records = await claimUnsentTravelRules(database, { at, limit: BATCH })
  for (const record of records) {
    if (signal.aborted) break
    await notifyInstitution({ database, network, dataKey, log }, record, at).catch((err: unknown) =>
      log.warn({ err, travelRuleId: record.id }, 'notifying an institution failed'),
    )
  }
  return records.length
}
