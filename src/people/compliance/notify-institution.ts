/** Sends Travel Rule data to the beneficiary's institution and polls for its answer. */

import { z } from 'zod'
import { raiseAlarm } from '../../books/alarms/alarms.ts'
import { toJson } from '../../core/base/json.ts'
import type { Log } from '../../core/base/log.ts'
import { unseal } from '../../core/base/seal.ts'
import { type Stablecoin, stablecoins, toDecimal } from '../../core/money/money.ts'
import type { TravelRuleAnswer, TravelRuleNetwork } from '../../providers/travel-rule-network/port.ts'
import type { Connection, Statement } from '../../storage/database.ts'
import { TRAVEL_RULE_PURPOSE } from './store.ts'

/** A record without an answer of its institution. @property reference null: not sent yet. */
export interface UnsentTravelRuleRecord {
  readonly id: string
  readonly institution: { readonly name: string; readonly lei: string | null }
  readonly token: Stablecoin
  readonly units: bigint
  readonly chain: string
  readonly destination: string
  readonly sealed: Uint8Array
  readonly reference: string | null
}

interface Row {
  readonly id: string
  readonly vasp_name: string
  readonly vasp_lei: string | null
  readonly token: string
  readonly units: bigint
  readonly chain: string
  readonly destination: string
  readonly sealed: Uint8Array
  readonly network_reference: string | null
}

const claim: Statement = {
  name: 'compliance_claim_untold',
  // Polling slows down with the age of the record and stops after three days.
  text: `update travel_rule set tried_at = $1 where id in (
      select id from travel_rule
      where vasp_name is not null and status in ('required', 'sent') and sealed is not null
        and created_at > $1::timestamptz - interval '3 days'
        and not exists (
          select 1 from alarm a where a.domain = 'compliance' and a.object_id = travel_rule.id and a.resolved_at is null)
        and (tried_at is null
          or tried_at < $1::timestamptz - greatest(interval '1 second', ($1::timestamptz - created_at) / 10))
      order by tried_at nulls first limit $2 for update skip locked)
    returning id, vasp_name, vasp_lei, token, units, chain, destination, sealed, network_reference`,
}

/** Claims records that are due to be sent or polled. */
export async function claimUnsentTravelRules(
  database: Connection,
  { at, limit }: { at: Date; limit: number },
): Promise<UnsentTravelRuleRecord[]> {
  const rows = await database.call<Row>(claim, [at, limit])
  return rows.map((row) => ({
    id: row.id,
    institution: { name: row.vasp_name, lei: row.vasp_lei },
    token: z.enum(stablecoins).parse(row.token),
    units: row.units,
    chain: row.chain,
    destination: row.destination,
    sealed: row.sealed,
    reference: row.network_reference,
  }))
}

/** Sends or polls once, outside of any transaction. @throws Failure `provider_unavailable`; it is retried later. */
export async function notifyInstitution(
  {
    database,
    network,
    dataKey,
    log,
  }: { database: Connection; network: TravelRuleNetwork; dataKey: Uint8Array; log: Log },
  { id, reference, sealed, units, ...record }: UnsentTravelRuleRecord,
  at: Date,
): Promise<void> {
  if (reference !== null) {
    const answer = await network.read(reference)
    if (answer.reference === reference) return note({ database, log }, { id, reference, at }, answer)
    const alarm = {
      domain: 'compliance',
      objectId: id,
      reason: 'another_message',
      reported: toJson(answer),
      at,
    } as const
    return raiseAlarm({ database, log }, alarm)
  }
  const payload: unknown = JSON.parse(unseal(dataKey, { purpose: TRAVEL_RULE_PURPOSE, owner: id }, sealed))
  const amount = toDecimal({ asset: record.token, units })
  const answer = await network.send({ ...record, id, amount, payload })
  return note({ database, log }, { id, reference: answer.reference, at }, answer)
}

/** Stores an answer. The first final answer stands. */
async function note(
  { database, log }: { database: Connection; log: Log },
  { id, reference, at }: { id: string; reference: string; at: Date },
  { status, reason }: TravelRuleAnswer,
): Promise<void> {
  const row = await database.kysely
    .updateTable('travel_rule')
    .set(({ fn, ref, val }) => ({
      status,
      answer: reason,
      network_reference: reference,
      sent_at: fn.coalesce(ref('sent_at'), val(at)),
    }))
    .where('id', '=', id)
    .where('status', 'in', ['required', 'sent'])
    .returning('decision_id')
    .executeTakeFirst()
  if (status === 'declined' && row !== undefined && row.decision_id !== null)
    log.warn(
      { travelRuleId: id, decisionId: row.decision_id },
      'the institution declined the data of a transfer that was already sent',
    )
}
