/**
 * Compliance: identity verification, Travel Rule data and blocked addresses. May import base, ports, ledger, spending
 * and policies. Personal data is stored sealed and can be erased; money does not move while screening is unavailable.
 */
import type { Connection, Statement } from '../storage/database.ts'

interface Row {
  readonly country: string | null
  readonly is_blocked: boolean
  readonly travel_rule_id: string | null
  readonly unanswered: 'required' | 'sent' | 'declined' | null
  readonly is_declined: boolean
  readonly listed_id: string | null
}

/**
 * Data not yet attached to a transfer, or attached to one that was released; a released reservation never stands
 * again.
 */
export const unusedTravelRuleCondition = `(decision_id is null or exists (
  select 1 from reservation r where r.decision_id = travel_rule.decision_id and r.status = 'released'))`

/** Unused records of exactly this transfer. */
const OF_TRANSFER = `account_id = a.id and destination = $2 and token = $3 and units = $4 and chain = $5
  and sealed is not null and ${unusedTravelRuleCondition}`

/** A notified institution has ten seconds to decline; after that, silence does not block the transfer. */
const IS_HEARD = `(vasp_name is null or status = 'accepted' or created_at <= $6::timestamptz - interval '10 seconds')`

/**
 * A decline blocks the address until an institution accepts, regardless of new data, another amount or erasure. The
 * latest answer counts; of two simultaneous answers, the decline.
 */
const IS_DECLINED = `coalesce((select status = 'declined' from travel_rule
  where account_id = a.id and destination = $2 and vasp_name is not null and status in ('accepted', 'declined')
  order by tried_at desc, status desc limit 1), false)`

/**
 * Data that names a listed party blocks its address, even after new data or erasure, until a manual decision clears
 * it. Such data is never sent to an institution.
 */
const LISTED = `(select id from travel_rule
  where account_id = a.id and destination = $2 and vasp_name is null and status = 'declined' and not exists (
    select 1 from travel_rule_decision d where d.travel_rule_id = travel_rule.id and d.verdict = 'approve')
  order by id limit 1)`

const statement: Statement = {
  name: 'compliance_transfer_facts',
  text: `select a.country,
      exists (select 1 from blocked_address b where b.account_id = a.id and b.address = $2) as is_blocked,
      (select id from travel_rule where ${OF_TRANSFER} and status <> 'declined' and ${IS_HEARD}
        order by id limit 1) as travel_rule_id,
      (select status from travel_rule where ${OF_TRANSFER} and vasp_name is not null
        order by id desc limit 1) as unanswered,
      ${IS_DECLINED} as is_declined,
      ${LISTED} as listed_id
    from account a where a.id = $1`,
}

/** Creates the reader of a transfer's compliance facts; one query per transfer. */
export function complianceFactsOn(database: Connection, now: Date) {
  return async ({
    accountId,
    destination,
    chain,
    money,
  }: {
    accountId: string
    destination: string
    chain: string
    money: { asset: string; units: bigint }
  }): Promise<{
    blocked: ReadonlySet<string>
    country: string | null
    travelRuleId: string | null
    institution: 'silent' | 'declined' | null
    listedDataId: string | null
  }> => {
    const address = destination.toLowerCase()
    const [row] = await database.call<Row>(statement, [
      accountId,
      address,
      money.asset,
      money.units,
      chain,
      now,
    ])
    if (row === undefined) throw new Error('the paying account must be in the database')
    return {
      blocked: new Set(row.is_blocked ? [address] : []),
      country: row.country,
      travelRuleId: row.is_declined ? null : row.travel_rule_id,
      institution: row.is_declined ? 'declined' : row.unanswered === null ? null : 'silent',
      listedDataId: row.listed_id,
    }
  }
}
