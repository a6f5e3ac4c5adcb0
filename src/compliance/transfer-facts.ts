/**
 * Compliance: what the law and the owner say of people and payments; Travel Rule data, blocked addresses. May import base,
 * ports, ledger, spending and policies. Personal data is stored sealed and can be erased; screening that cannot be had stops
 * the money.
 */
import type { Connection, Statement } from '../storage/database.ts'

interface Row {
  readonly country: string | null
  readonly is_blocked: boolean
  readonly travel_rule_id: string | null
}

/** Data that no transfer goes with yet, or one that never went: a released reservation never stands again. */
export const UNUSED = `(decision_id is null or exists (
  select 1 from reservation r where r.decision_id = travel_rule.decision_id and r.status = 'released'))`

const statement: Statement = {
  name: 'compliance_transfer_facts',
  text: `select a.country,
      exists (select 1 from blocked_address b where b.account_id = a.id and b.address = $2) as is_blocked,
      (select id from travel_rule
        where account_id = a.id and destination = $2 and token = $3 and units = $4 and chain = $5
          and status <> 'declined' and sealed is not null and ${UNUSED}
        order by id limit 1) as travel_rule_id
    from account a where a.id = $1`,
}

/** Reads what compliance knows of transfers, in one query each. */
export function complianceFactsOn(database: Connection) {
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
  }): Promise<{ blocked: ReadonlySet<string>; country: string | null; travelRuleId: string | null }> => {
    const address = destination.toLowerCase()
    const [row] = await database.call<Row>(statement, [accountId, address, money.asset, money.units, chain])
    if (row === undefined) throw new Error('an account that pays is in the database')
    return {
      blocked: new Set(row.is_blocked ? [address] : []),
      country: row.country,
      travelRuleId: row.travel_rule_id,
    }
  }
}
